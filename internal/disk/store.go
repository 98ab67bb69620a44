// Store: records in one file, which is a ring of regions.
//
//	| header 4 KiB | region 1 MiB | region | ... | region |
//
// Package disk stores the records of a cache's disk tier. Regions are filled in order and
// overwritten in order. The store keeps no index: an Owner does, and refers to each record by its
// Place. See docs/design/disk.md.
package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/file/filelock"
)

// A Place is where a record begins in the file, in units of 64 B. None is 0, so an owner may use 0
// for no record. Places reach 256 GiB: see MaxBytes.
type Place uint32

const (
	// UnitBytes is the unit of a Place: a record takes a whole number of units.
	UnitBytes = 64

	// MinBytes and MaxBytes are the least and the most that Options.MaxBytes may be.
	MinBytes = leastRegions * regionBytes
	MaxBytes = 1 << 32 * UnitBytes

	// HeadBytes is the size of a record without its key and value.
	HeadBytes = 32
)

const (
	regionBytes  = 1 << 20
	leastRegions = 8
	headerBytes  = 4096
	pageBytes    = 4096 // the greatest alignment that a disk wants
	tailBytes    = 16 << 10
	leastBuffers = 4
	mostBuffers  = 16

	// leastGap is the size from which a gap in a region is worth a second write.
	leastGap = 64 << 10

	maxWorth      = 3
	maxReadErrors = 8
	maxSeq        = 1 << 49 // a position is below 2^64
)

func pagesUp(n int) int { return (n + pageBytes - 1) &^ (pageBytes - 1) }

// Options configures a Store. Dir, MaxBytes, Parent and Owner are required.
type Options struct {
	// Dir is the directory, which must exist, of the store's files: freehold.disk and, between a
	// clean stop and the next start, freehold.disk.index.
	Dir string

	// MaxBytes bounds the file's size. The store uses whole regions of 1 MiB after a header of
	// 4 KiB: 8 MiB have 7 regions. Disk space for the whole file is allocated by Open.
	MaxBytes int64

	// Parent provides the memory for the regions that are written and the records that are read. It
	// must be safe for concurrent use.
	Parent freehold.Allocator

	Owner Owner

	// BufferBytes is the memory for regions that are filled or wait to be written: 4 to 16 regions,
	// but at most half of the file's. More lose fewer records while the process or the disk is busy.
	BufferBytes int

	// Load, unless it is nil, reads the bytes that the save function of the last Close wrote. Open
	// calls it if there was a clean stop and the file has the same size; all of it was verified by
	// a checksum. An error of Load, which may be one of the disk, makes the store begin empty: the
	// owner must then forget all that it has loaded.
	Load func(r io.Reader) error

	// Logger gets one line, an error, if the store turns itself off, and a warning if Open replaces
	// a damaged header. nil means none.
	Logger *slog.Logger

	region  int                 // bytes, for tests; 0 means regionBytes
	threads bool                // for tests: read without a ring
	cached  bool                // for tests: use the system's page cache
	wrap    func(*Store)        // for tests: it may replace readAt, scanAt and writeAt, and set wrote
	sleep   func(time.Duration) // for tests; nil means time.Sleep
}

// An Owner has the index: it refers to records by their places. The store calls it from a goroutine
// of its own and holds no lock meanwhile, so the owner may take locks under which it calls Append.
// The first call comes after the first Append. Owner's methods may call Append; they must not call
// Close.
type Owner interface {
	// Worth returns how much a record in a region that is overwritten soon is worth writing again:
	// 0 not at all or nothing refers to it, up to 3. The store rewrites records of the highest
	// worth first, in at most half of a region.
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

// Stats are a store's counts since Open. Bytes are in whole units unless said otherwise.
type Stats struct {
	FileBytes   int64 // of all regions
	MemoryBytes int   // from the parent, for regions that are written

	Appended      uint64 // records that Append took, without those written again
	AppendedBytes uint64
	Again         uint64 // records written again
	AgainBytes    uint64
	WrittenBytes  uint64 // of whole regions, so with heads, tables and what is left empty
	NoBuffer      uint64 // records that Append dropped because the disk is behind, or off
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
//
// mu guards what appenders and the writer share. The owner's methods are called without it.
type Store struct {
	geometry
	file   *os.File
	parent freehold.Allocator
	owner  Owner
	logger *slog.Logger

	buffers []*buffer
	align   int                                    // of reads
	readAt  func(b []byte, off int64) (int, error) // for Read
	scanAt  func(b []byte, off int64) (int, error) // for the writer
	writeAt func(b []byte, off int64) (int, error)
	ring    reader // of readAt, or nil

	first  uint64        // the sequence number with which an empty store began
	opened atomic.Uint64 // the latest; changed under mu
	off    atomic.Pointer[error]
	counts counts

	mu        sync.Mutex
	open      *buffer   // of the region that is being filled, or nil
	free      []*buffer // of no region
	clean     int       // regions that may be overwritten
	wantClean int
	started   bool // the writer runs
	closed    bool

	sealed  chan *buffer // to the writer
	written chan struct{}
	wrote   func() // for tests: called when the writer begins to wait for a region

	// Of the writer.
	scratch []byte // off-heap, a region that is emptied
	table   []entry
	worth   []uint8

	life  sync.RWMutex // held shared by Read, so that Close waits
	ended bool         // guarded by life
}

type counts struct {
	appended, appendedBytes, again, againBytes, writtenBytes, noBuffer, tooLarge,
	reads, buffered, overwritten, otherKey, damaged, noMemory,
	reclaimed, lost, readErrors, writeErrors atomic.Uint64
}

// Open opens or creates the store in o.Dir. It returns an error if another store, of this process
// or another, has it open for the next half second, if the file is not a store's, if there is no
// room for it, or if the parent has no memory. warm says that there was a clean stop and that Load
// has succeeded; if not, the store is empty.
func Open(o Options) (s *Store, warm bool, err error) {
	region := o.region
	if region == 0 {
		region = regionBytes
	}
	if least := int64(leastRegions * region); o.MaxBytes < least || o.MaxBytes > MaxBytes {
		return nil, false, fmt.Errorf("freehold: a disk tier of %d bytes, want %d to %d", o.MaxBytes, least, int64(MaxBytes))
	}
	if o.sleep == nil {
		o.sleep = time.Sleep
	}
	g := geometry{region: region, regions: int((o.MaxBytes - headerBytes) / int64(region))}
	buffers := min(max(o.BufferBytes/region, leastBuffers), mostBuffers, g.regions/2)
	s = &Store{
		geometry: g, parent: o.Parent, owner: o.Owner, logger: o.Logger, align: 1,
		wantClean: buffers, sealed: make(chan *buffer, buffers), written: make(chan struct{}),
		wrote: func() {},
	}
	defer func() {
		if err != nil {
			s.end()
			s, err = nil, fmt.Errorf("freehold: disk tier: %w", err)
		}
	}()
	file, fresh, err := openFile(o.Dir, g.offset(g.regions), o.sleep, o.Logger)
	if err != nil {
		return s, false, err
	}
	s.file, s.readAt, s.scanAt, s.writeAt = file, file.ReadAt, file.ReadAt, file.WriteAt
	if err := s.allocate(buffers); err != nil {
		return s, false, err
	}
	if !o.cached {
		s.goDirect()
	}
	if !o.threads {
		s.useRing()
	}
	if fresh {
		o.Load = nil
	}
	if warm, err = s.loadIndex(o.Load); err != nil {
		return s, false, err
	}
	if !warm { // numbers that no earlier store had
		s.first, s.clean = 1<<32+rand.Uint64N(maxSeq/4), g.regions
		s.opened.Store(s.first - 1)
	}
	if o.wrap != nil {
		o.wrap(s)
	}
	return s, warm, nil
}

// allocate takes the memory for regions from the parent. It must read zero at first: undefined
// bytes would be written to the file.
func (s *Store) allocate(buffers int) (err error) {
	for range buffers {
		b := &buffer{ready: make([]atomic.Uint64, (s.region/UnitBytes+63)/64)}
		if b.mem, err = s.parent.Zeroed(s.region, pageBytes); err != nil {
			return err
		}
		s.buffers = append(s.buffers, b)
		s.free = append(s.free, b)
	}
	s.scratch, err = s.parent.Alloc(s.region, pageBytes)
	return err
}

// goDirect bypasses the page cache, if a read shows that it works.
func (s *Store) goDirect() {
	if align, err := setDirect(s.file, true); err == nil && s.reads(s.file) {
		s.align = align
	} else {
		_, _ = setDirect(s.file, false)
	}
}

// useRing reads by io_uring, if a read shows that it works.
func (s *Store) useRing() {
	ring, err := newRing(s.file)
	if err != nil {
		return
	}
	if !s.reads(ring) {
		ring.Close()
		return
	}
	s.ring, s.readAt = ring, ring.ReadAt
}

type reader interface {
	io.ReaderAt
	io.Closer
}

// reads reports whether r can read the file's header.
func (s *Store) reads(r io.ReaderAt) bool {
	b := s.scratch[:headerBytes]
	clear(b)
	_, err := r.ReadAt(b, 0)
	return err == nil && strings.HasPrefix(string(b), headerText)
}

// end frees what Open has taken.
func (s *Store) end() (err error) {
	for _, b := range s.buffers {
		s.parent.Free(b.mem)
	}
	s.parent.Free(s.scratch)
	if s.ring != nil {
		err = s.ring.Close()
	}
	if s.file != nil {
		filelock.Unlock(s.file)
		err = errors.Join(err, s.file.Close())
	}
	return err
}

// Append adds a record and returns its place. It copies the record to memory and never waits for
// the disk. It reports false for a record that is dropped, and counted: the writer is behind, the
// record is too large for a region, or the store is off.
//
// The owner must refer to the place before another call for the same key, under one lock.
func (s *Store) Append(r *Record) (at Place, ok bool) {
	if len(r.Value) > s.region || len(r.Key) > maxKeyBytes {
		s.counts.tooLarge.Add(1)
		return 0, false
	}
	size := Size(len(r.Key), len(r.Value))
	if size+entryBytes+footBytes > s.region {
		s.counts.tooLarge.Add(1)
		return 0, false
	}
	b, off := s.reserve(r.Hash, size)
	if b == nil {
		s.counts.noBuffer.Add(1)
		return 0, false
	}
	at = s.place(b.seq.Load(), off)
	b.fill(r, off, size)
	if r.again {
		s.counts.again.Add(1)
		s.counts.againBytes.Add(uint64(size))
	} else {
		s.counts.appended.Add(1)
		s.counts.appendedBytes.Add(uint64(size))
	}
	return at, true
}

// turnOff ends the use of the disk after an error.
func (s *Store) turnOff(op string, err error) {
	err = fmt.Errorf("%s: %w", op, err)
	if s.off.CompareAndSwap(nil, &err) && s.logger != nil {
		s.logger.LogAttrs(context.Background(), slog.LevelError, "freehold: disk tier off",
			slog.String("file", s.file.Name()), slog.Any("error", err))
	}
}

// Newest returns a place such that records at the places after it are older than all others.
func (s *Store) Newest() Place {
	return s.place(s.opened.Load(), s.region) - 1
}

// IsOff reports whether the store has turned itself off.
func (s *Store) IsOff() bool { return s.off.Load() != nil }

// Stats returns the counts. Those of calls that run meanwhile may be partly in it.
func (s *Store) Stats() Stats {
	c := &s.counts
	st := Stats{
		FileBytes:   s.offset(s.regions),
		MemoryBytes: (len(s.buffers) + 1) * s.region,

		Appended: c.appended.Load(), AppendedBytes: c.appendedBytes.Load(),
		Again: c.again.Load(), AgainBytes: c.againBytes.Load(), WrittenBytes: c.writtenBytes.Load(),
		NoBuffer: c.noBuffer.Load(), TooLarge: c.tooLarge.Load(),

		Reads: c.reads.Load(), Buffered: c.buffered.Load(), Overwritten: c.overwritten.Load(),
		OtherKey: c.otherKey.Load(), Damaged: c.damaged.Load(), NoMemory: c.noMemory.Load(),

		Reclaimed: c.reclaimed.Load(), Lost: c.lost.Load(),
		ReadErrors: c.readErrors.Load(), WriteErrors: c.writeErrors.Load(),
	}
	if err := s.off.Load(); err != nil {
		st.Off = *err
	}
	return st
}

// Close writes the buffered records to the file, then calls save with a writer for the owner's
// index, unless save is nil or the store is off, and closes the file. The owner's methods may be
// called until Close calls save. Close waits for calls of Read, and later ones return ErrOff. Later
// calls of Append drop their records. A second Close is a no-op.
//
// If Close or save fails, or the process ends before, the next Open begins empty.
func (s *Store) Close(save func(w io.Writer) error) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.sealOpen()
	close(s.sealed)
	started := s.started
	s.mu.Unlock()
	if started {
		<-s.written
	}
	var err error
	if s.off.Load() == nil && save != nil {
		err = s.saveIndex(save)
	}
	s.life.Lock()
	defer s.life.Unlock()
	s.ended = true
	if err = errors.Join(err, s.end()); err != nil {
		return fmt.Errorf("freehold: disk tier: %w", err)
	}
	return nil
}
