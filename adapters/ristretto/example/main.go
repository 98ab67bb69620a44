// Command example sorts the words of its arguments in a z.Buffer that is off-heap.
package main

import (
	"fmt"
	"os"

	"github.com/freehold-go/freehold/adapters/ristretto/z"
)

func main() {
	buf := z.NewBuffer(1<<20, "words")
	for _, word := range os.Args[1:] {
		buf.WriteSlice([]byte(word))
	}
	buf.SortSlice(func(a, b []byte) bool { return string(a) < string(b) })
	_ = buf.SliceIterate(func(word []byte) error {
		fmt.Println(string(word))
		return nil
	})
	fmt.Println(z.NumAllocBytes(), "bytes are allocated.")
	_ = buf.Release()
	fmt.Println(z.Leaks())
}
