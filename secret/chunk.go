// Chunks: secrets are slots in chunks of pages that are accessible while a Use runs.
//
//	guard page | pages of a chunk: slot 0 | slot 1 | ... | guard page
//
// A chunk has one slot, which ends at the guard page. With Options.Share it is one page of slots of
// equal size. All metadata is in Go's heap, so a closed page is opened for its secrets alone.

package secret

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

// leastSlot is the size of the smallest slots: a key of AES-128.
const leastSlot = 16

// A chunk is a run of pages between two guard pages. mu guards the fields below it; the store's mu
// guards free.
type chunk struct {
	addr, size uintptr
	slotBytes  uintptr
	strength   Strength
	free       []uint16 // the numbers of free slots

	mu               sync.Mutex
	ended            sync.Cond // signals that a slot to be destroyed has no users
	access           vm.Access
	readers, writers int // calls of Use; of Make's fill and of destroy
}

// A slot holds one secret. Its bytes are zero before fill and after destroy. Their address is a
// number, so package fmt and others that follow pointers do not reach them.
type slot struct {
	store      *Store
	chunk      *chunk
	addr, size uintptr
	index      uint16

	// Guarded by chunk.mu.
	users     int // functions that may read bytes
	destroyed bool
	wiped     bool
}

func (sl *slot) bytes() []byte { return unsafe.Slice((*byte)(vm.Pointer(sl.addr)), sl.size) }

// use calls f with the slot's bytes. While f runs, it counts as a user of the slot, and in *n as a
// reader or writer of the chunk.
func (sl *slot) use(n *int, f func(b []byte) error) (err error) {
	c := sl.chunk
	c.mu.Lock()
	if sl.destroyed {
		c.mu.Unlock()
		return ErrDestroyed
	}
	if err := c.count(n, 1); err != nil {
		c.mu.Unlock()
		return err
	}
	sl.users++
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		sl.users--
		if sl.users == 0 && sl.destroyed {
			c.ended.Broadcast()
		}
		if e := c.count(n, -1); err == nil {
			err = e
		}
	}()
	return f(sl.bytes())
}

// destroy waits for the slot's users, wipes it and gives it back.
func (sl *slot) destroy() error {
	c := sl.chunk
	c.mu.Lock()
	sl.destroyed = true
	for sl.users > 0 {
		c.ended.Wait()
	}
	if sl.wiped {
		c.mu.Unlock()
		return nil
	}
	err := c.count(&c.writers, 1)
	if err == nil {
		clear(sl.bytes())
		sl.wiped = true
		err = c.count(&c.writers, -1)
	}
	wiped := sl.wiped
	c.mu.Unlock()
	if wiped {
		sl.store.give(c, sl.index)
	}
	return err
}

// count adds by to *n, which is c.readers or c.writers, and sets the access that these need. If the
// system refuses to open the pages, *n is as before.
//
// Precondition: c.mu is held.
func (c *chunk) count(n *int, by int) error {
	*n += by
	want := vm.NoAccess
	switch {
	case c.writers > 0:
		want = vm.ReadWrite
	case c.readers > 0:
		want = vm.ReadOnly
	}
	if want == c.access {
		return nil
	}
	if err := vm.ProtectSecret(c.addr, c.size, want); err != nil {
		*n -= max(by, 0)
		return fmt.Errorf("freehold: secret: %w", err)
	}
	c.access = want
	return nil
}

// take returns a slot of size bytes, which are zero.
func (s *Store) take(size uintptr) (*slot, error) {
	slotBytes := wholePages(max(size, 1))
	if s.share && size <= vm.PageBytes()/2 {
		slotBytes = 1 << bits.Len(uint(max(size, leastSlot)-1))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.room[slotBytes]) == 0 {
		c, err := newChunk(slotBytes, s.need)
		if err != nil {
			return nil, err
		}
		s.room[slotBytes] = append(s.room[slotBytes], c)
	}
	room := s.room[slotBytes]
	c := room[len(room)-1]
	index := c.free[len(c.free)-1]
	c.free = c.free[:len(c.free)-1]
	if len(c.free) == 0 {
		s.room[slotBytes] = room[:len(room)-1]
	}
	start := c.addr + uintptr(index)*slotBytes
	if slotBytes == c.size {
		start += slotBytes - size // ends at the guard page
	}
	return &slot{store: s, chunk: c, addr: start, size: size, index: index}, nil
}

// give takes a wiped slot back, and returns the memory of a chunk without secrets.
func (s *Store) give(c *chunk, index uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.free = append(c.free, index)
	room := s.room[c.slotBytes]
	if len(c.free) == 1 {
		room = append(room, c)
	}
	if uintptr(len(c.free)) == c.size/c.slotBytes {
		i := slices.Index(room, c)
		room = slices.Delete(room, i, i+1)
		// The next CommitSecret replaces the pages if the system refuses this.
		_ = vm.RevokeSecret(c.addr, c.size)
		ranges.put(c.addr, c.size)
	}
	if s.room[c.slotBytes] = room; len(room) == 0 {
		delete(s.room, c.slotBytes)
	}
}

// newChunk returns a chunk whose slots are all free.
func newChunk(slotBytes uintptr, need Strength) (*chunk, error) {
	c := &chunk{size: wholePages(slotBytes), slotBytes: slotBytes, access: vm.ReadWrite}
	c.ended.L = &c.mu
	var err error
	if c.addr, err = ranges.take(c.size); err != nil {
		return nil, fmt.Errorf("freehold: secret: %w", err)
	}
	got, err := vm.CommitSecret(c.addr, c.size, vm.Secrecy(need))
	if err != nil {
		ranges.put(c.addr, c.size)
		var refused *vm.Error
		if errors.As(err, &refused) && refused.Op == vm.OpCommit {
			return nil, fmt.Errorf("freehold: secret: %w", err)
		}
		lacks := need &^ Strength(got)
		if lacks&Locked != 0 && errors.Is(err, vm.ErrNoMemory) {
			err = fmt.Errorf("the limit of locked memory is reached (RLIMIT_MEMLOCK, ulimit -l): %w", err)
		}
		return nil, fmt.Errorf("%w: it lacks %v: %w", ErrWeak, lacks, err)
	}
	c.strength = Strength(got)
	for i := c.size / slotBytes; i > 0; i-- {
		c.free = append(c.free, uint16(i-1))
	}
	return c, nil
}

func wholePages(size uintptr) uintptr { return vm.RoundUp(size, vm.PageBytes()) }

// ranges has the address ranges of chunks. They are never given back to the system: Go's heap might
// grow into them while a slice of Use still refers to them.
var ranges = addresses{idle: map[uintptr][]uintptr{}}

type addresses struct {
	mu   sync.Mutex
	used int                   // ranges of chunks
	most int                   // of used; 0 until the first take
	idle map[uintptr][]uintptr // ranges of former chunks, by size
}

// take returns a range of size bytes between guard pages.
func (r *addresses) take(size uintptr) (addr uintptr, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.most == 0 {
		// A range in use takes two of the process's mappings. So ranges take at most half of them:
		// Go's runtime dies if it gets none.
		r.most = vm.Mappings() / 4
	}
	if r.used >= r.most {
		return 0, fmt.Errorf("%d runs of pages are in use, as many as half of the process's mappings allow (vm.max_map_count); Options.Share puts several secrets into a page", r.used)
	}
	r.used++
	if idle := r.idle[size]; len(idle) > 0 {
		r.idle[size] = idle[:len(idle)-1]
		return idle[len(idle)-1], nil
	}
	if addr, err = vm.ReserveSecret(size + 2*vm.PageBytes()); err != nil {
		r.used--
		return 0, err
	}
	return addr + vm.PageBytes(), nil
}

func (r *addresses) put(addr, size uintptr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used--
	r.idle[size] = append(r.idle[size], addr)
}
