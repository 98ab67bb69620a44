// Store: records in one file, which is a ring of regions.
//
//	| header 4 KiB | region 1 MiB | region | ... | region |
//
// Package disk stores the records of a cache's disk tier in a file. The store fills the regions in
// order, then overwrites them in the same order. Its Owner keeps the index, which refers to each
// record by its Place. See docs/design/disk.md.
package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freehold-go/freehold"
)

// A Place is the offset of a record in the file, in units of UnitBytes. No record has Place 0, since
// the file begins with a header.
type Place uint32

const (
	// UnitBytes is the unit of a Place. A record takes a whole number of units.
	UnitBytes = 64

	// MinBytes and MaxBytes are the limits of Options.MaxBytes. A Place addresses MaxBytes.
	MinBytes = leastRegions * regionBytes
	MaxBytes = 1 << 32 * UnitBytes

	// HeadBytes is the size of a record without its key and value.
	HeadBytes = 32

	// MostBytes bounds the Size of a record: it fits a region beside its entry and the footer.
	MostBytes = regionBytes - entryBytes - footerBytes
)

const (
	regionBytes  = 1 << 20
	leastRegions = 8
	headerBytes  = 4096
	pageBytes    = 4096     // the greatest alignment that a disk needs
	tailBytes    = 16 << 10 // the end of a region, which the writer reads first: most tables fit
	leastBuffers = 4
	mostBuffers  = 16

	// leastGap is the smallest gap between records and table that is not written. Leaving it out
	// takes a second write.
	leastGap = 64 << 10

	maxPriority   = 3
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

	// Parent provides the buffers of regions, and memory for a record during each Read. It must be
	// safe for concurrent use.
	Parent freehold.Allocator

	Owner Owner

	// BufferBytes is the memory for regions that are being filled or wait to be written. Open
	// rounds it down to whole regions: at least 4, at most 16 and half of the file's. With more
	// buffers, Append drops fewer records while the process or the disk is busy.
	BufferBytes int

	// Load, unless it is nil, reads the bytes that the save function of the last Close wrote. Open
	// calls it after a clean stop, if the file has the same size and the bytes have the right
	// checksum. Reads of r may still fail. If Load returns an error, the store begins empty, and
	// the owner must forget the places that it has loaded.
	Load func(r io.Reader) error

	// Logger gets an error if the store turns itself off, and a warning if Open finds the file of
	// a store but begins empty. nil means no log.
	Logger *slog.Logger

	region  int                 // bytes, for tests; 0 means regionBytes
	threads bool                // for tests: read without io_uring
	cached  bool                // for tests: use the system's page cache
	wrap    func(*Store)        // for tests: may replace readAt, scanAt, writeAt and wrote
	sleep   func(time.Duration) // for tests; nil means time.Sleep
}

// An Owner keeps the index, which refers to records by their places. Before a region is
// overwritten, the store calls Priority for each of its records, then Rewrite for some and Forget
// for all.
//
// The writer goroutine of the store makes these calls, after the first Append. It holds no lock. So
// the methods may call Append, and take the lock that the owner holds for Append. They must not
// call Close.
type Owner interface {
	// Priority returns the priority with which a record is rewritten, from 0 to 3. It is 0 if the
	// record should be dropped, or if the index does not refer to at. The store rewrites the records
	// of the highest priority first, up to half of the region.
	Priority(hash uint64, at Place) int

	// Rewrite gets a record whose region is to be overwritten. If the index still refers to at and
	// the record has not expired, the owner calls Append with r and refers to the new place. It
	// holds its lock for changes of the key meanwhile. The memory of r is valid until Rewrite
	// returns.
	Rewrite(at Place, r *Record)

	// Forget removes a record from the index, if the index still refers to at. The store calls it
	// for each record of a region before it overwrites the region, and after Rewrite of the record.
	Forget(hash uint64, at Place)

	// ForgetRange removes all records at from <= place < to from the index. The store calls it
	// instead of the other methods if it cannot read the table of a region. This is rare, so
	// ForgetRange may search the whole index.
	ForgetRange(from, to Place)
}

// Stats are a store's counts since Open. AppendedBytes and RewrittenBytes count whole units.
type Stats struct {
	FileBytes   int64 // of the header and all regions
	MemoryBytes int   // from the parent: the buffers, and a region for the writer

	Appended       uint64 // records that Append accepted, without rewritten ones
	AppendedBytes  uint64
	Rewritten      uint64
	RewrittenBytes uint64
	WrittenBytes   uint64 // to the file: records, tables, and the gaps between them that are written
	NoBuffer       uint64 // records that Append dropped: no free buffer, or the store is off or closed
	TooLarge       uint64 // records that Append dropped: larger than a region

	Reads       uint64 // calls of Read
	Buffered    uint64 // of these, those that read a buffer
	Overwritten uint64 // calls of Read that returned ErrOverwritten
	OtherKey    uint64 // calls of Read that returned ErrOtherKey
	Damaged     uint64 // records, and tables of regions, with a wrong checksum
	NoMemory    uint64 // calls of Read that used the Go heap, since the parent had no memory

	Reclaimed   uint64 // regions
	Lost        uint64 // of these, those whose table could not be read or was damaged
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
	uring   reader // of readAt, or nil

	first  uint64        // the sequence number of the first region since the store was empty
	opened atomic.Uint64 // the latest sequence number; changed under mu
	off    atomic.Pointer[error]
	counts counts

	mu        sync.Mutex
	open      *buffer   // of the region that is being filled, or nil
	free      []*buffer // buffers that have no region
	clean     int       // regions that may be overwritten: see writer.go
	wantClean int       // the clean regions that the writer keeps ahead
	started   bool      // the writer runs
	closed    bool

	sealed     chan *buffer  // full buffers, to the writer
	writerDone chan struct{} // closed when the writer has ended
	wrote      func()        // for tests: called when the writer begins to wait for a region

	// Of the writer alone: the region that is being reclaimed.
	scratch    []byte // off-heap
	table      []entry
	priorities []uint8 // of the records in table; 0 is not to be rewritten

	reading sync.RWMutex // held shared by Read, so that Close waits
	ended   bool         // guarded by reading
}

type counts struct {
	appended, appendedBytes, rewritten, rewrittenBytes, writtenBytes, noBuffer, tooLarge,
	reads, buffered, overwritten, otherKey, damaged, noMemory,
	reclaimed, lost, readErrors, writeErrors atomic.Uint64
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
	if size+entryBytes+footerBytes > s.region {
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
	if r.rewritten {
		s.counts.rewritten.Add(1)
		s.counts.rewrittenBytes.Add(uint64(size))
	} else {
		s.counts.appended.Add(1)
		s.counts.appendedBytes.Add(uint64(size))
	}
	return at, true
}

// turnOff ends the use of the disk after an error. It keeps and logs the first error.
func (s *Store) turnOff(op string, err error) {
	err = fmt.Errorf("%s: %w", op, err)
	if s.off.CompareAndSwap(nil, &err) && s.logger != nil {
		s.logger.LogAttrs(context.Background(), slog.LevelError, "freehold: disk tier off",
			slog.String("file", s.file.Name()), slog.Any("error", err))
	}
}

// Newest returns the last place of the open region. Records at higher places are of the previous lap
// of the ring, so they are older than all others.
func (s *Store) Newest() Place {
	return s.place(s.opened.Load(), s.region) - 1
}

// IsOff reports whether the store has turned itself off.
func (s *Store) IsOff() bool { return s.off.Load() != nil }

// Stats returns the counts. It may have some of the counts of a concurrent call and not others.
func (s *Store) Stats() Stats {
	c := &s.counts
	st := Stats{
		FileBytes:   s.offset(s.regions),
		MemoryBytes: (len(s.buffers) + 1) * s.region,

		Appended: c.appended.Load(), AppendedBytes: c.appendedBytes.Load(),
		Rewritten: c.rewritten.Load(), RewrittenBytes: c.rewrittenBytes.Load(), WrittenBytes: c.writtenBytes.Load(),
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

// Close writes the buffered records to the file, calls save to write the owner's index, and closes
// the file. It does not call save if save is nil or the store is off. The store may call methods of
// the owner until Close calls save.
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
	s.reading.Lock()
	defer s.reading.Unlock()
	s.ended = true
	if err = errors.Join(err, s.end()); err != nil {
		return fmt.Errorf("freehold: disk tier: %w", err)
	}
	return nil
}
