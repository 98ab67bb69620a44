// Tree file: the log of a persistent tree, which is in memory.
//
// The file is a buffer of records, each of two words, little-endian:
//
//	| all ones, magic | key, value | key, value | 0, ts       | ...
//	| Reset           | Set        | Set        | DeleteBelow |
//
// Each change is committed, so the file has the whole tree if the process is killed. Records before
// the last Reset are obsolete. When most of the others are obsolete too, the tree is written anew,
// as a Reset and its entries. They are valid once the buffer's length includes them:
//
//	| unused | Reset, changes |  ->  | unused | Reset, changes | Reset, entries |
//	| unused        | Reset, changes |  ->  | Reset, entries |

package z

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/freehold-go/freehold/btree"
	"github.com/freehold-go/freehold/buffer"
)

const (
	recordBytes = 16
	resetKey    = math.MaxUint64
	magic       = 0x3165657274687266 // "frhtree1"
	slack       = 4096               // obsolete records that are kept
)

// A treeFile is the file with the changes of a persistent tree. The zero treeFile is no file.
type treeFile struct {
	b      *buffer.Buffer
	first  int // offset of the last Reset
	sorted int // offset of the end of the entries behind it that were written in order
	record [recordBytes]byte
}

// NewTreePersistent returns the tree in the file at path, or an empty one if there is no file. The
// tree is in memory, and the file has all changes. They survive an end of the process at any time,
// and after Close an end of the system. A change costs about 100 ns more than in a Tree without a
// file.
//
// The file has 16 bytes for each Set. When these are more than twice the entries, it is written
// anew. So it takes up to five times the entries' bytes and 128 KiB, and twice that while it is
// open. It is locked while the tree is open, as by [buffer.Open]. Files of ristretto are not read.
// Calls that change the tree panic if the disk is full.
func NewTreePersistent(path string) (*Tree, error) {
	b, err := buffer.Open(path, nil)
	if err != nil {
		return nil, err
	}
	t := NewTree("")
	if guard := b.Guard(func() { err = t.load(b) }); guard != nil || err != nil {
		t.m.Close()
		return nil, errors.Join(fmt.Errorf("freehold: z: %s: %w", path, errors.Join(guard, err)), b.Close())
	}
	t.file.b = b
	return t, nil
}

// load applies the valid records of b to the tree, or writes the first record of an empty b.
func (t *Tree) load(b *buffer.Buffer) error {
	data := b.Bytes()
	if len(data) == 0 {
		putRecord(t.file.record[:], resetKey, magic)
		_, err := b.Write(t.file.record[:])
		return err
	}
	isReset := func(at int) bool { k, v := recordAt(data, at); return k == resetKey && v == magic }
	if len(data)%recordBytes != 0 || !isReset(0) {
		return fmt.Errorf("no tree, or it is %w: %d bytes", buffer.ErrCorrupt, len(data))
	}
	at := len(data) - recordBytes
	for !isReset(at) {
		at -= recordBytes
	}
	t.file.first = at
	at += recordBytes
	if err := t.m.Load(ascending(data, &at)); err != nil {
		return err
	}
	t.file.sorted = at
	for ; at < len(data); at += recordBytes {
		switch k, v := recordAt(data, at); k {
		case 0:
			t.deleteBelow(v)
		default:
			if err := t.m.Put(k, v); err != nil {
				return err
			}
		}
	}
	return nil
}

func recordAt(data []byte, at int) (k, v uint64) {
	record := data[at : at+recordBytes]
	return binary.LittleEndian.Uint64(record), binary.LittleEndian.Uint64(record[8:])
}

// ascending returns the records from at on as long as their keys ascend, and sets at to their end.
func ascending(data []byte, at *int) iter.Seq2[uint64, uint64] {
	return func(yield func(k, v uint64) bool) {
		for last := uint64(0); *at < len(data); *at += recordBytes {
			k, v := recordAt(data, *at)
			if k <= last || !yield(k, v) {
				return
			}
			last = k
		}
	}
}

// room rewrites the file if most of it is obsolete. Call it before log. It panics if the disk
// fails.
func (t *Tree) room() {
	f := &t.file
	if f.b != nil && (f.b.Len()-f.first)/recordBytes > 2*t.m.Len()+slack {
		if err := f.rewrite(t.m); err != nil {
			panic(err)
		}
	}
}

// log appends a record, which is valid from commit on. It panics if the disk is full, and then has
// changed nothing.
func (t *Tree) log(k, v uint64) {
	f := &t.file
	if f.b != nil {
		putRecord(f.record[:], k, v)
		if _, err := f.b.Write(f.record[:]); err != nil {
			panic(err)
		}
	}
}

func putRecord(to []byte, k, v uint64) {
	binary.LittleEndian.PutUint64(to, k)
	binary.LittleEndian.PutUint64(to[8:], v)
}

// unlog drops the record of a change that failed.
func (f *treeFile) unlog() {
	if f.b != nil {
		f.b.Truncate(f.b.Len() - recordBytes)
	}
}

// commit makes all records valid.
func (t *Tree) commit() {
	if b := t.file.b; b != nil {
		if err := b.Commit(); err != nil {
			panic(err)
		}
	}
}

// rewriting is called by rewrite when the first record is written, for tests.
var rewriting = func() {}

// rewrite writes the entries beside the valid records, and then drops the old records. Without
// space, and on an error, the file is unchanged.
func (f *treeFile) rewrite(m *btree.Map[uint64, uint64]) error {
	b := f.b
	old, size := b.Len(), (1+m.Len())*recordBytes
	at := 0
	if size > f.first {
		at = old
		if _, err := b.Extend(size); err != nil {
			return nil // the records take less
		}
	}
	err := b.Guard(func() {
		to := b.Bytes()[at : at+size]
		putRecord(to, resetKey, magic)
		rewriting()
		for k, v := range m.All() {
			to = to[recordBytes:]
			putRecord(to, k, v)
		}
	})
	if err == nil {
		err = b.Sync()
	}
	if err != nil {
		b.Truncate(old)
		return err
	}
	f.first, f.sorted = at, at+size
	return f.cut()
}

// cut drops the records behind the sorted ones. The new length is on disk before other records are
// written in their place.
func (f *treeFile) cut() error {
	if f.sorted == f.b.Len() {
		return nil
	}
	f.b.Truncate(f.sorted)
	return f.b.Sync()
}

// reset leaves the first record, a Reset.
func (f *treeFile) reset() {
	if f.b != nil {
		f.first, f.sorted = 0, recordBytes
		if err := f.cut(); err != nil {
			panic(err)
		}
	}
}

// close closes the file. It rewrites a file with many changes first, since applying changes takes
// five times as long as loading sorted entries.
func (f *treeFile) close(m *btree.Map[uint64, uint64]) (err error) {
	if f.b == nil {
		return nil
	}
	if changes := (f.b.Len() - f.sorted) / recordBytes; changes > m.Len()/8+slack {
		err = f.rewrite(m)
	}
	err = errors.Join(err, f.b.Close())
	f.b = nil
	return err
}
