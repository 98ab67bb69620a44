// Command example builds an Arrow record whose buffers are off-heap, within a limit.
package main

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/freehold-go/freehold"
	freeholdarrow "github.com/freehold-go/freehold/adapters/arrow"
)

func main() {
	heap := freehold.NewHeap(&freehold.HeapOptions{Name: "arrow", MaxBytes: 64 << 20})
	defer heap.Close()
	b := array.NewInt64Builder(freeholdarrow.New(heap))
	defer b.Release()
	for i := range int64(1_000_000) {
		b.Append(i)
	}
	column := b.NewInt64Array()
	defer column.Release()
	fmt.Println(column.Len(), "numbers,", heap.Stats().LiveBytes>>20, "MiB off-heap")
}
