// An example that needs mapped files.

//go:build !js && !wasip1

package buffer_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/buffer"
)

// Records with a key are written to a file and sorted there. Another process, or the
// same one later, opens the file to read.
func Example_file() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "words")
	if err := writeSorted(path, "pear", "fig", "apple", "quince"); err != nil {
		log.Fatal(err)
	}

	buf := freehold.Must(buffer.Open(path, &buffer.OpenOptions{ReadOnly: true}))
	defer buf.Close()
	records := freehold.Must(buffer.NewRecords(buf, nil))
	err = buf.Guard(func() { // so that a file that is truncated meanwhile is an error
		for offset, record := range records.All() {
			fmt.Println(offset, binary.BigEndian.Uint32(record), string(record[4:]))
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// 0 3 fig
	// 11 4 pear
	// 23 5 apple
	// 36 6 quince
}

// writeSorted writes a record for each word, its length and then the word, in the order
// of the lengths.
func writeSorted(path string, words ...string) error {
	buf, err := buffer.Open(path, nil)
	if err != nil {
		return err
	}
	defer buf.Close() // again, if all went well
	records, err := buffer.NewRecords(buf, nil)
	if err != nil {
		return err
	}
	for _, word := range words {
		record, err := records.Append(4 + len(word))
		if err != nil {
			return err
		}
		binary.BigEndian.PutUint32(record, uint32(len(word)))
		copy(record[4:], word)
	}
	key := func(record []byte) []byte { return record[:4] }
	if err := records.SortBy(context.Background(), key, nil); err != nil {
		return err
	}
	return buf.Close() // which commits
}
