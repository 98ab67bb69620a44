// An example that needs mapped files.

//go:build !js && !wasip1

package buffer_test

import (
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
