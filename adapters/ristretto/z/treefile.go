// Tree file: a persistent tree between two programs.

package z

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"

	"github.com/freehold-go/freehold/btree"
	"github.com/freehold-go/freehold/buffer"
)

const entryBytes = 16 // a key and its value, little-endian

// A treeFile is where a persistent tree is. The zero treeFile is none.
type treeFile struct {
	path string
	was  *buffer.Buffer // open, so that nobody else takes the file
}

// NewTreePersistent returns the tree that was closed with the file at path, or an empty one if there is no file. The tree is in memory, and Close writes the
// file anew: a process that ends without Close leaves it as it was. It reads no files of ristretto. While the tree is open the file is
// locked, as [buffer.Open] does.
func NewTreePersistent(path string) (*Tree, error) {
	was, err := buffer.Open(path, nil)
	if err != nil {
		return nil, err
	}
	t := NewTree("")
	t.file = treeFile{path, was}
	err = t.m.Load(entriesOf(was.Bytes()))
	if odd := was.Len() % entryBytes; err == nil && odd != 0 {
		err = fmt.Errorf("freehold: z: %s is no tree: %w: %d bytes are left after its entries", path, buffer.ErrCorrupt, odd)
	}
	if err != nil {
		t.m.Close()
		return nil, errors.Join(err, was.Close())
	}
	return t, nil
}

func entriesOf(data []byte) iter.Seq2[uint64, uint64] {
	return func(yield func(k, v uint64) bool) {
		for ; len(data) >= entryBytes; data = data[entryBytes:] {
			if !yield(binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint64(data[8:])) {
				return
			}
		}
	}
}

// save writes the entries to a new file, which takes the place of the old one.
func (f *treeFile) save(m *btree.Map[uint64, uint64]) error {
	if f.path == "" {
		return nil
	}
	temp := f.path + ".new"
	err := write(temp, m)
	if err = errors.Join(err, f.was.Close()); err == nil {
		err = os.Rename(temp, f.path)
	}
	f.path = ""
	return err
}

func write(path string, m *btree.Map[uint64, uint64]) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // of a process that was killed here
		return err
	}
	b, err := buffer.Open(path, nil)
	if err != nil {
		return err
	}
	for k, v := range m.All() {
		entry, err := b.Extend(entryBytes)
		if err != nil {
			return errors.Join(err, b.Close())
		}
		binary.LittleEndian.PutUint64(entry, k)
		binary.LittleEndian.PutUint64(entry[8:], v)
	}
	return b.Close()
}
