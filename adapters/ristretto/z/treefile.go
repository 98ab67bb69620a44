// Tree file: a persistent tree between two programs.
//
// It is a buffer. Its last bytes say where the entries of the last Close begin:
//
//	| unused | key, value | key, value | ... | offset of the first |
//
// Close writes where there are none of these: before them if there is room, else behind them. The length of the buffer then
// commits which count. So a process that is killed leaves what one Close has written, or what the other has.

package z

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/freehold-go/freehold/btree"
	"github.com/freehold-go/freehold/buffer"
)

const (
	entryBytes   = 16 // a key and its value, little-endian
	trailerBytes = 8  // the offset, little-endian
)

// A treeFile is where a persistent tree is. The zero treeFile is none.
type treeFile struct {
	b     *buffer.Buffer
	first int // offset of the entries
}

// NewTreePersistent returns the tree that was closed with the file at path, or an empty one if there is no file. The tree is in memory, and Close writes all
// of it: a process that ends without Close leaves the file as it was. The file takes up to three times the bytes of the entries, of 16 each. It reads no files
// of ristretto. While the tree is open the file is locked, as [buffer.Open] does.
func NewTreePersistent(path string) (*Tree, error) {
	b, err := buffer.Open(path, nil)
	if err != nil {
		return nil, err
	}
	t := NewTree("")
	if err := t.load(b); err != nil {
		t.m.Close()
		return nil, errors.Join(fmt.Errorf("freehold: z: %s: %w", path, err), b.Close())
	}
	return t, nil
}

// load takes the entries of a file, which is t's then.
func (t *Tree) load(b *buffer.Buffer) error {
	end, first := b.Len()-trailerBytes, uint64(0)
	if b.Len() > 0 {
		if end >= 0 {
			first = binary.LittleEndian.Uint64(b.Bytes()[end:])
		}
		if end < 0 || first > uint64(end) || (end-int(first))%entryBytes != 0 {
			return fmt.Errorf("no tree, or it is %w: it has %d bytes, and entries from %d on", buffer.ErrCorrupt, b.Len(), first)
		}
		if err := t.m.Load(entriesOf(b.Bytes()[first:end])); err != nil {
			return err
		}
	}
	t.file = treeFile{b, int(first)}
	return nil
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

// save writes the entries and closes the file. On an error the file has those that it had.
func (f *treeFile) save(m *btree.Map[uint64, uint64]) error {
	b := f.b
	if b == nil {
		return nil
	}
	f.b = nil
	old, size := b.Len(), m.Len()*entryBytes+trailerBytes
	at := 0
	if size > f.first {
		at = old
		if _, err := b.Extend(size); err != nil {
			return errors.Join(err, b.Close())
		}
	}
	err := b.Guard(func() {
		to := b.Bytes()[at : at+size]
		for k, v := range m.All() {
			binary.LittleEndian.PutUint64(to, k)
			binary.LittleEndian.PutUint64(to[8:], v)
			to = to[entryBytes:]
		}
		binary.LittleEndian.PutUint64(to, uint64(at))
	})
	if err == nil {
		err = b.Sync() // before a shorter length counts
	}
	if err != nil {
		b.Truncate(old)
	} else {
		b.Truncate(at + size)
	}
	return errors.Join(err, b.Close())
}
