// Store: records in one file, which is a ring of regions.
//
//	| header 4 KiB | region 1 MiB | region | ... | region |
//
// Package disk stores the records of a cache's disk tier in a file. The store fills regions in
// order, and overwrites them in the same order. It keeps no index: its Owner does, and refers to
// each record by its Place. See docs/design/disk.md.
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

// A Place is the offset of a record in the file, in units of 64 B. No record has Place 0, since the
// file begins with a header. 32 bits address 256 GiB: see MaxBytes.
type Place uint32

const (
	// UnitBytes is the unit of a Place: a record takes a whole number of units.
	UnitBytes = 64

	// MinBytes and MaxBytes are the limits of Options.MaxBytes.
	MinBytes = leastRegions * regionBytes
	MaxBytes = 1 << 32 * UnitBytes

	// HeadBytes is the size of a record without its key and value.
	HeadBytes = 32

	// MostBytes bounds the Size of a record: it fits a region beside its entry and the foot.
	MostBytes = regionBytes - entryBytes - footBytes
)

const (
	regionBytes  = 1 << 20
	leastRegions = 8
	headerBytes  = 4096
	pageBytes    = 4096     // the greatest alignment that a disk needs
	tailBytes    = 16 << 10 // the writer reads the end of a region first: most tables fit
	leastBuffers = 4
	mostBuffers  = 16

	// leastGap is the smallest gap between records and table that is left out, at the cost of a
	// second write.
	leastGap = 64 << 10

	maxWorth      = 3
	maxReadErrors = 8       // the store then turns itself off
	maxSeq        = 1 << 49 // keeps positions below 2^64
)

func pagesUp(n int) int { return (n + pageBytes - 1) &^ (pageBytes - 1) }

// Options configures a Store. Dir, MaxBytes, Parent and Owner are required.
type Options struct {
	// Dir is the directory of the store's files: freehold.disk and, between a clean stop and the
	// next start, freehold.disk.index. Dir must exist.
	Dir string

	// MaxBytes bounds the file's size. The store uses whole regions of 1 MiB after a header of
	// 4 KiB: 8 MiB have 7 regions. Open allocates disk space for the whole file, where the system
	// can.
	MaxBytes int64

	// Parent provides the buffers of regions and, for the time of a Read, memory for a record. It
	// must be safe for concurrent use.
	Parent freehold.Allocator

	Owner Owner

	// BufferBytes is the memory for regions that are filled or wait to be written. Open rounds it
	// to 4 to 16 regions, and at most half of the file's. With more buffers, Append drops fewer
	// records while the process or the disk is busy.
	BufferBytes int

	// Load, unless it is nil, reads the bytes that the save function of the last Close wrote. Open
	// calls it after a clean stop, if the file has the same size and the checksum of the bytes is
	// right. Reading may still fail. If Load returns an error, the store begins empty, and the
	// owner must forget the places that it has loaded.
	Load func(r io.Reader) error

	// Logger gets one error if the store turns itself off, and a warning if Open finds a store's file
	// and begins empty all the same. nil means no log.
	Logger *slog.Logger

	region  int                 // bytes, for tests; 0 means regionBytes
	threads bool                // for tests: read without io_uring
	cached  bool                // for tests: use the system's page cache
	wrap    func(*Store)        // for tests: it may replace readAt, scanAt and writeAt, and set wrote
	sleep   func(time.Duration) // for tests; nil means time.Sleep
}

// An Owner keeps the index, which refers to records by their places. Before a region is
// overwritten, the store calls Worth for each of its records, then Rewrite for some and Leave for
// all.
//
// The store's writer goroutine makes these calls, the first one after the first Append. It holds no
// lock, so the methods may call Append, and take the lock under which the owner calls Append. They
// must not call Close.
type Owner interface {
	// Worth returns the priority of a record for being written again, from 0 to 3. It is 0 if the
	// record should be dropped, or if the index does not refer to at. The store rewrites records of
	// the highest worth first, at most half of the region.
	Worth(hash uint64, at Place) int

	// Rewrite is called with a record that is to be written again. If the index still refers to at
	// and the record has not expired, the owner calls Append with r and refers to the new place. It
	// holds the lock for changes of the key meanwhile. r's memory is valid until Rewrite returns.
	Rewrite(at Place, r *Record)

	// Leave is called for each record of a region before the region is overwritten, and after
	// Rewrite of the record. The owner must forget the record if it still refers to at.
	Leave(hash uint64, at Place)

	// Lost is called instead of the other methods if the table of a region cannot be read. The
	// owner must forget all records at from <= place < to. That is rare, and may walk through the
	// whole index.
	Lost(from, to Place)
}

// Stats are a store's counts since Open. AppendedBytes and AgainBytes count whole units.
type Stats struct {
	FileBytes   int64 // of the header and all regions
	MemoryBytes int   // from the parent: the buffers, and a region for the writer

	Appended      uint64 // records that Append accepted, without those written again
	AppendedBytes uint64
	Again         uint64 // records written again
	AgainBytes    uint64
	WrittenBytes  uint64 // to the file: records, tables and the gaps between them that are written
	NoBuffer      uint64 // records that Append dropped: no free buffer, or the store is off or closed
	TooLarge      uint64 // records that Append dropped: they are larger than a region

	Reads       uint64 // calls of Read
	Buffered    uint64 // of those, calls that read a buffer
	Overwritten uint64 // calls of Read that returned ErrOverwritten
	OtherKey    uint64 // calls of Read that returned ErrOtherKey
	Damaged     uint64 // records, and tables of regions, with wrong bytes
	NoMemory    uint64 // calls of Read that used the Go heap, since the parent had no memory

	Reclaimed   uint64 // regions that were emptied to be overwritten
	Lost        uint64 // of those, regions whose table could not be read or was damaged
	ReadErrors  uint64 // failed reads of the file, by Read or by the writer
	WriteErrors uint64
	Off         error // why the store has turned itself off, or nil
}

// A Store keeps records in a file. Its methods are safe for concurrent use.
//
// mu guards the fields from open to closed, which appenders and the writer share. The writer calls
// the owner's methods without mu.
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

	first  uint64        // the sequence number of the first region since the store was empty
	opened atomic.Uint64 // the latest sequence number; changed under mu
	off    atomic.Pointer[error]
	counts counts

	mu        sync.Mutex
	open      *buffer   // of the region that is being filled, or nil
	free      []*buffer // buffers that have no region
	clean     int       // regions that may be overwritten: see writer.go
	wantClean int       // clean regions that the writer keeps ahead
	started   bool      // the writer runs
	closed    bool

	sealed     chan *buffer  // full buffers, to the writer
	writerDone chan struct{} // closed when the writer has ended
	wrote      func()        // for tests: called when the writer begins to wait for a region

	// For the writer alone.
	scratch []byte  // off-heap; the region that is being reclaimed
	table   []entry // of that region
	worth   []uint8 // of each record in table

	life  sync.RWMutex // held shared by Read, so that Close waits
	ended bool         // guarded by life
}

type counts struct {
	appended, appendedBytes, again, againBytes, writtenBytes, noBuffer, tooLarge,
	reads, buffered, overwritten, otherKey, damaged, noMemory,
	reclaimed, lost, readErrors, writeErrors atomic.Uint64
}

// Open opens or creates the store in o.Dir. It returns an error if another store, of this process
// or another, still has the file open after half a second, if the file is not a store's, if the
// disk has no room for it, or if the parent has no memory. warm reports whether Load succeeded
// after a clean stop. If not, the store is empty.
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
		wantClean: buffers, sealed: make(chan *buffer, buffers), writerDone: make(chan struct{}),
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
	if !warm { // a random number, so that records of earlier stores fail the checksum
		s.first, s.clean = 1<<32+rand.Uint64N(maxSeq/4), g.regions
		s.opened.Store(s.first - 1)
	}
	if o.wrap != nil {
		o.wrap(s)
	}
	return s, warm, nil
}

// allocate gets the buffers and scratch from the parent. Buffers begin as zeros, since write also
// writes bytes that no record has filled.
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

// goDirect makes reads and writes bypass the page cache, if a trial read succeeds.
func (s *Store) goDirect() {
	if align, err := setDirect(s.file, true); err == nil && s.reads(s.file) {
		s.align = align
	} else {
		_, _ = setDirect(s.file, false)
	}
}

// useRing makes readAt read by io_uring, if a trial read succeeds.
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

// end frees the memory of the store, and closes its io_uring and its file. It also cleans up after
// a failed Open.
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

// Append adds a record and returns its place. It copies the record to a buffer and never waits for
// the disk. If the writer is behind, the record is larger than a region, or the store is off or
// closed, Append drops the record, counts it and returns false.
//
// The owner must hold its lock for changes of the key from Append until its index has the place.
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

// turnOff makes the store use the disk no more after an error. It keeps and logs the first error.
func (s *Store) turnOff(op string, err error) {
	err = fmt.Errorf("%s: %w", op, err)
	if s.off.CompareAndSwap(nil, &err) && s.logger != nil {
		s.logger.LogAttrs(context.Background(), slog.LevelError, "freehold: disk tier off",
			slog.String("file", s.file.Name()), slog.Any("error", err))
	}
}

// Newest returns the last place of the region that was opened last. Records at higher places are
// from the previous lap of the ring, so they are older than all others.
func (s *Store) Newest() Place {
	return s.place(s.opened.Load(), s.region) - 1
}

// IsOff reports whether the store has turned itself off.
func (s *Store) IsOff() bool { return s.off.Load() != nil }

// Stats returns the counts. It may see some of the counts of a concurrent call and not others.
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
// index, and closes the file. It does not call save if save is nil or the store is off. The owner's
// methods may be called until Close calls save.
//
// Close waits for calls of Read. Later calls of Read return ErrOff, and later calls of Append drop
// their records. A second Close is a no-op.
//
// If Close or save fails, or the process ends before Close returns, the next Open begins empty.
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
		<-s.writerDone
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
