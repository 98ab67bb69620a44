// Examples for the documentation.

package buffer_test

import (
	"fmt"
	"io"
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

// Readers keep their own places, and see what is appended later.
func ExampleBuffer_NewReader() {
	b := buffer.New(freehold.Default(), nil)
	defer b.Close()
	b.WriteString("first\n")
	r := b.NewReader()
	r.WriteTo(os.Stdout)
	b.WriteString("second\n")
	r.WriteTo(os.Stdout)
	r.Seek(-4, io.SeekEnd)
	r.WriteTo(os.Stdout)
	// Output:
	// first
	// second
	// ond
}
