// An example that needs mapped files.

//go:build !js && !wasip1

package buffer_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/buffer"
)

// What was committed is there when the file is opened again, whatever ended the
// process.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "freehold")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "journal")

	b := freehold.Must(buffer.Open(path, nil))
	b.WriteString("kept")
	b.Commit() // from here on it survives the end of the process
	if err := b.Close(); err != nil {
		fmt.Println(err)
		return
	}

	b, err = buffer.Open(path, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	fmt.Printf("%s\n", b.Bytes())
	// Output: kept
}

// A log whose entries are durable: Sync returns when the disk has them. Others may read the
// file within Guard, which turns the fault of a file that was truncated into an error.
func ExampleBuffer_Sync() {
	dir, err := os.MkdirTemp("", "freehold")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	b := freehold.Must(buffer.Open(filepath.Join(dir, "log"), &buffer.OpenOptions{MaxBytes: 1 << 20}))
	for i := range 3 {
		fmt.Fprintf(b, "transaction %d\n", i)
		if err := b.Sync(); err != nil {
			fmt.Println(err)
			return
		}
	}
	lines := 0
	err = b.Guard(func() { lines = bytes.Count(b.Bytes(), []byte("\n")) })
	fmt.Println(lines, err, b.Close())
	// Output: 3 <nil> <nil>
}
