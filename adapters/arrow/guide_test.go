package arrow_test

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/freehold-go/freehold"
	freeholdarrow "github.com/freehold-go/freehold/adapters/arrow"
)

func Example_arrowBefore() {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil)
	b := array.NewRecordBuilder(mem, schema)
	defer b.Release()

	for batch := range int64(3) {
		b.Field(0).(*array.Int64Builder).AppendValues([]int64{batch, batch + 1}, nil)
		rows := b.NewRecordBatch()
		fmt.Println(rows.Column(0))
		rows.Release()
	}
	fmt.Println(mem.CurrentAlloc(), "bytes live")
	// Output:
	// [0 1]
	// [1 2]
	// [2 3]
	// 0 bytes live
}

func Example_arrowAfter() {
	heap := freehold.NewHeap(&freehold.HeapOptions{Name: "arrow", MaxBytes: 64 << 20})
	defer heap.Close()
	mem := freeholdarrow.New(heap)
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil)
	b := array.NewRecordBuilder(mem, schema)
	defer b.Release()

	for batch := range int64(3) {
		b.Field(0).(*array.Int64Builder).AppendValues([]int64{batch, batch + 1}, nil)
		rows := b.NewRecordBatch()
		fmt.Println(rows.Column(0))
		rows.Release()
	}
	fmt.Println(heap.Stats().LiveBytes, "bytes live")
	// Output:
	// [0 1]
	// [1 2]
	// [2 3]
	// 0 bytes live
}
