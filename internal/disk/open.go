// Open: the start of a store, and the release of its resources.

package disk

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/freehold-go/freehold/internal/file/filelock"
)

// Open opens or creates the store in o.Dir. It returns an error if another store, in this process
// or another one, still has the file open after half a second. It also does if the file is not a
// store's, if the disk has no room for it, or if the parent has no memory. warm reports whether the
// store has the records of a clean stop: Load has succeeded. If not, the store is empty.
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
	opened := false // stays false if the parent or Load panics
	defer func() {
		if !opened {
			s.end()
		}
		if err != nil {
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
		s.useUring()
	}
	if fresh {
		o.Load = nil
	}
	if warm, err = s.loadIndex(o.Load); err != nil {
		return s, false, err
	}
	if !warm { // a random sequence number, so that records of earlier stores fail the checksum
		s.first, s.clean = 1<<32+rand.Uint64N(maxSeq/4), g.regions
		s.opened.Store(s.first - 1)
	}
	if o.wrap != nil {
		o.wrap(s)
	}
	opened = true
	return s, warm, nil
}

// allocate gets the buffers and scratch from the parent. Buffers are zeroed, since write also writes
// bytes that no record has filled.
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

// useUring makes readAt read by io_uring, if a trial read succeeds.
func (s *Store) useUring() {
	uring, err := newUring(s.file, s.align > 1)
	if err != nil {
		return
	}
	if !s.reads(uring) {
		uring.Close()
		return
	}
	s.uring, s.readAt = uring, uring.ReadAt
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

// end closes the io_uring and the file of the store, and frees its memory. A failed Open calls it
// too. The memory is last, since Free of a closed parent panics.
func (s *Store) end() (err error) {
	if s.uring != nil {
		err = s.uring.Close()
	}
	if s.file != nil {
		filelock.Unlock(s.file)
		err = errors.Join(err, s.file.Close())
	}
	for _, b := range s.buffers {
		s.parent.Free(b.mem)
	}
	s.parent.Free(s.scratch)
	return err
}
