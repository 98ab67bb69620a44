// An example that needs mapped files.

//go:build !js && !wasip1

package btree_test

import (
	"encoding/binary"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/btree"
	"github.com/freehold-go/freehold/buffer"
)

// A map that outlives the process: its entries are written to a file in order, and
// loaded when the program starts.
func ExampleMap_Load() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	dir, err := os.MkdirTemp("", "btree")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	index := btree.New[uint64, uint64](heap, nil)
	defer index.Close()
	for i := range uint64(1000) {
		_ = index.Put(i*i, i)
	}
	path := filepath.Join(dir, "squares")
	if err := save(path, index); err != nil {
		fmt.Println(err)
		return
	}

	file, err := buffer.Open(path, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close()
	again := btree.New[uint64, uint64](heap, nil)
	defer again.Close()
	if err := again.Load(entries(file.Bytes())); err != nil {
		fmt.Println(err)
		return
	}
	root, _ := again.Get(998001)
	fmt.Println(again.Len(), root)
	// Output: 1000 999
}

// save writes the entries to a new file.
func save(path string, m *btree.Map[uint64, uint64]) error {
	file, err := buffer.Open(path, nil)
	if err != nil {
		return err
	}
	file.Clear()
	for k, v := range m.All() {
		b, err := file.Extend(16)
		if err != nil {
			file.Close()
			return err
		}
		binary.LittleEndian.PutUint64(b, k)
		binary.LittleEndian.PutUint64(b[8:], v)
	}
	return file.Close() // which commits the data
}

// entries returns what save has written.
func entries(b []byte) iter.Seq2[uint64, uint64] {
	return func(yield func(k, v uint64) bool) {
		for ; len(b) >= 16; b = b[16:] {
			if !yield(binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])) {
				return
			}
		}
	}
}
