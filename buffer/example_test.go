// Examples for the documentation.

package buffer_test

import (
	"fmt"
	"os"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/buffer"
)

// A buffer that moves to a temporary file when it passes 64 MiB.
func Example() {
	b := buffer.New(freehold.Default(), &buffer.Options{SpillAfter: 64 << 20})
	defer b.Close()
	for i := range 3 {
		fmt.Fprintf(b, "line %d\n", i)
	}
	b.WriteTo(os.Stdout)
	fmt.Println(b.Len(), "bytes, in a file:", b.InFile())
	// Output:
	// line 0
	// line 1
	// line 2
	// 21 bytes, in a file: false
}

func ExampleBuffer_Extend() {
	b := buffer.New(freehold.Default(), nil)
	defer b.Close()
	record := freehold.Must(b.Extend(8))
	copy(record, "8 bytes!")
	fmt.Printf("%s\n", b.Bytes())
	// Output: 8 bytes!
}
