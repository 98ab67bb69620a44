package guides

import (
	"bytes"
	"context"
	"fmt"

	"github.com/dgraph-io/ristretto/v2/z"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/buffer"
)

func Example_bufferBefore() {
	b := z.NewBuffer(1<<10, "lines").WithMaxSize(1 << 20) // panics beyond it
	defer b.Release()

	for _, line := range []string{"pear", "apple", "plum"} {
		b.WriteSlice([]byte(line))
	}
	b.SortSlice(func(left, right []byte) bool { return bytes.Compare(left, right) < 0 })
	err := b.SliceIterate(func(line []byte) error {
		fmt.Printf("%s\n", line)
		return nil
	})
	fmt.Println(err)
	// Output:
	// apple
	// pear
	// plum
	// <nil>
}

func Example_bufferAfter() {
	b := buffer.New(freehold.Default(), &buffer.Options{MaxBytes: 1 << 20}) // an error beyond it
	defer b.Close()
	lines, err := buffer.NewRecords(b, nil)
	if err != nil {
		panic(err)
	}

	for _, line := range []string{"pear", "apple", "plum"} {
		if err := lines.AppendBytes([]byte(line)); err != nil {
			panic(err)
		}
	}
	err = lines.SortBy(context.Background(), nil, nil) // by the whole record
	for _, line := range lines.All() {
		fmt.Printf("%s\n", line)
	}
	fmt.Println(err)
	// Output:
	// apple
	// pear
	// plum
	// <nil>
}
