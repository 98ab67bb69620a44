// Store: records in one file, which is a ring of regions.
//
//	| header 4 KiB | region 1 MiB | region | ... | region |
//
// Package disk stores the records of a cache's disk tier. Regions are filled in order and
// overwritten in order. The store keeps no index: an Owner does, and refers to each record by its
// Place. See docs/design/disk.md.
package disk

import (
	"errors"
	"io"
	"log/slog"
	"sync"

	"github.com/freehold-go/freehold"
)

// A Place is where a record begins in the file, in units of 64 B. None is 0, so an owner may use 0
// for no record. Places reach 256 GiB: see MaxBytes.
type Place uint32

const (
	// UnitBytes is the unit of a Place: a record takes a whole number of units.
	UnitBytes = 64

	// MinBytes and MaxBytes are the least and the most that Options.MaxBytes may be.
	MinBytes = 8 << 20
	MaxBytes = 1 << 38

	// HeadBytes is the size of a record without its key and value.
	HeadBytes = 32

	regionBytes = 1 << 20
	headerBytes = 4096
)

// Errors of Read, for errors.Is. Each means that the record cannot be had. All other errors are of
// the disk, or of the parent for lack of memory. The store counts each kind.
var (
	// ErrOverwritten says that the region was overwritten meanwhile. The owner may refer to another
	// place by now: it should look again, at most a few times.
	ErrOverwritten = errors.New("freehold: the record is overwritten")

	// ErrOtherKey says that the record at this place is whole and has another key.
	ErrOtherKey = errors.New("freehold: the record has another key")

	// ErrDamaged says that the bytes are not those that were written.
	ErrDamaged = errors.New("freehold: the record is damaged")

	// ErrOff says that the store is closed, or has turned itself off.
	ErrOff = errors.New("freehold: the disk tier is off")
)

// Options configures a Store. Dir, MaxBytes, Parent and Owner are required.
type Options struct {
	// Dir is the directory, which must exist, of the store's files: freehold.disk and, between a
	// clean stop and the next start, freehold.disk.index.
	Dir string

	// MaxBytes bounds the file's size. The store uses whole regions of 1 MiB. Disk space for the
	// whole file is allocated by Open.
	MaxBytes int64

	// Parent provides the memory for the regions that are written and the records that are read. It
	// must be safe for concurrent use.
	Parent freehold.Allocator

	Owner Owner

	// Load, unless it is nil, reads what the save function of the last Close wrote. Open calls it
	// if there was a clean stop and the file has the same size; all of it was verified by a
	// checksum. An error of Load, which may be one of the disk, makes the store begin empty: the
	// owner must then forget all that it has loaded.
	Load func(r io.Reader) error

	// Logger gets one line, an error, if the store turns itself off. nil means none.
	Logger *slog.Logger
}

// An Owner has the index: it refers to records by their places. The store calls it from a goroutine
// of its own and holds no lock meanwhile, so the owner may take locks under which it calls Append.
// Owner's methods may call Append; they must not call Close.
type Owner interface {
	// Worth returns how much a record in a region that is overwritten soon is worth writing again:
	// 0 not at all or nothing refers to it, up to 3. The store rewrites records of the highest worth
	// first, in at most half of a region.
	Worth(hash uint64, at Place) int

	// Rewrite is called with a record that is worth writing again. If the index still refers to at
	// and the record has not expired, the owner calls Append with r and refers to the new place,
	// under the same lock as other changes of the key. r's memory is valid until Rewrite returns.
	Rewrite(at Place, r *Record)

	// Leave is called for every record of a region before it is overwritten, after Rewrite. The
	// owner must forget the record if it still refers to at.
	Leave(hash uint64, at Place)

	// Lost is called instead of the other methods for a region whose table of hashes cannot be
	// read. The owner must forget all records at from <= place < to. That is a walk through the
	// whole index, and rare.
	Lost(from, to Place)
}

// Meta is the part of a record that only the owner understands.
type Meta struct {
	Flags   uint64
	Version uint64
	Expires uint32
	Kind    uint16
}

// A Record is what the store keeps for a key.
type Record struct {
	Hash       uint64 // of Key, by the owner's hash function
	Key, Value []byte
	Meta

	again bool // it is written again
}

// Size returns the bytes that a record with a key and a value of these sizes takes in the file, a
// multiple of UnitBytes. Its place in the table of hashes is extra: 12 B.
func Size(keyBytes, valueBytes int) int {
	return (HeadBytes + keyBytes + valueBytes + UnitBytes - 1) &^ (UnitBytes - 1)
}

// Stats are a store's counts since Open. Bytes are in whole units unless said otherwise.
type Stats struct {
	FileBytes   int64 // of all regions
	MemoryBytes int   // from the parent, for regions that are written

	Appended      uint64 // records that Append took, without those written again
	AppendedBytes uint64
	Again         uint64 // records written again
	AgainBytes    uint64
	WrittenBytes  uint64 // of whole regions, so with heads, tables and what is left empty
	NoBuffer      uint64 // records that Append dropped because the disk is behind
	TooLarge      uint64 // records that Append dropped because no region has room

	Reads       uint64 // calls of Read
	Buffered    uint64 // of those, found in a region that was not yet written
	Overwritten uint64 // calls of Read that returned ErrOverwritten
	OtherKey    uint64 // calls of Read that returned ErrOtherKey
	Damaged     uint64 // records, and tables of regions, with wrong bytes
	NoMemory    uint64 // calls of Read for which the parent had no memory

	Reclaimed   uint64 // regions that were emptied to be overwritten
	Lost        uint64 // of those, regions whose table could not be read
	ReadErrors  uint64
	WriteErrors uint64
	Off         error // why the store has turned itself off, or nil
}

// A Store keeps records in a file. Its methods are safe for concurrent use.
type Store struct {
	mu    sync.Mutex
	next  Place
	at    map[Place]Record
	stats Stats
}

// Open opens or creates the store in o.Dir. It returns an error if another store, of this process or
// another, has it open, if the file is not a store's, or if there is no room for it.
func Open(o Options) (*Store, error) {
	return &Store{next: headerBytes / UnitBytes, at: map[Place]Record{}}, nil
}

// Append adds a record and returns its place. It copies the record to memory and never waits for
// the disk. It reports false for a record that is dropped, and counted: the writer is behind, the
// record is too large, or the store is off.
//
// The owner must refer to the place before another call for the same key, under one lock.
func (s *Store) Append(r *Record) (Place, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if Size(len(r.Key), len(r.Value)) > regionBytes/2 {
		s.stats.TooLarge++
		return 0, false
	}
	at := s.next
	s.next += Place(Size(len(r.Key), len(r.Value)) / UnitBytes)
	c := *r
	c.Key, c.Value = append([]byte(nil), r.Key...), append([]byte(nil), r.Value...)
	s.at[at] = c
	return at, true
}

// Read appends the value of the record at a place to dst, and returns its Meta. size is the record's
// Size or more: an owner may know it only roughly. Read reads that many bytes from the disk, once,
// or takes the record from memory if its region is not yet written. If Read returns an error, dst
// has its old length.
//
// Read verifies the checksum, which covers place and region, and the whole key. So a value is never
// a wrong one, but a record may have been replaced or deleted while it was read: the owner must
// check its index afterwards if that matters.
func (s *Store) Read(dst []byte, at Place, size int, key []byte) ([]byte, Meta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Reads++
	r, ok := s.at[at]
	if !ok {
		return dst, Meta{}, ErrOverwritten
	}
	if string(r.Key) != string(key) {
		return dst, Meta{}, ErrOtherKey
	}
	return append(dst, r.Value...), r.Meta, nil
}

// Life returns a number that changes when the region of a place is overwritten. An owner that refers
// to the same place in the same life, before and after a Read, has the same record there. The number
// never repeats while the store is open.
func (s *Store) Life(at Place) uint64 { return 0 }

// Stats returns the counts.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// Close writes what is in memory to the file, then calls save with a writer for the owner's index,
// unless save is nil or the store is off, and closes the file. The owner's methods may be called
// until Close calls save. A second Close is a no-op.
//
// If Close or save fails, or the process ends before, the next Open begins empty.
func (s *Store) Close(save func(w io.Writer) error) error { return nil }
