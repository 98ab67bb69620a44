// Secrets: slots in chunks of pages that are accessible while a Use runs.
//
//	guard page | pages of a chunk: slot 0 | slot 1 | ... | guard page
//
// A chunk has one slot, which ends at the guard page, or with Options.Share is one page of slots of
// one size. Everything that describes a chunk is in Go's heap, so that a closed page need not be
// opened.

package secret

import (
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/vm"
)

var (
	// ErrDestroyed is returned by Use of a secret whose Destroy has begun.
	ErrDestroyed = errors.New("freehold: the secret is destroyed")

	// ErrWeak matches errors for a system that gives less than Options.Need. Such an error names what
	// is missing and the system's error: the limit of locked memory, or a call that it does not have.
	ErrWeak = errors.New("freehold: the secret's memory is weaker than Options.Need")
)

// A Strength is a set of properties of a secret's memory.
type Strength uint8

const (
	// Locked memory is never written to swap. It counts against RLIMIT_MEMLOCK.
	Locked = Strength(vm.Locked)

	// Hidden memory is mapped in this process alone, and not even by the kernel (memfd_secret, Linux
	// 5.14). ptrace, /proc/pid/mem and process_vm_readv of root cannot read it. Nor can system calls
	// that pin the pages of a buffer, such as a read with O_DIRECT; they fail with EFAULT.
	Hidden = Strength(vm.Hidden)

	// NoDump memory is left out of core dumps (MADV_DONTDUMP).
	NoDump = Strength(vm.NoDump)

	// NoFork memory does not reach forked children: they read zeros (MADV_WIPEONFORK), or have no
	// such memory. Package os/exec never gives memory to a child.
	NoFork = Strength(vm.NoFork)

	// Closed memory faults unless a Use runs, and on a write in Use.
	Closed = Strength(vm.Closed)

	// Guarded memory lies between pages that always fault. Without Options.Share a secret ends at
	// such a page, to the byte.
	Guarded = Strength(vm.Guarded)
)

var names = [...]string{"Locked", "Hidden", "NoDump", "NoFork", "Closed", "Guarded"}

// String returns the names of the properties, as in "Locked|NoDump", or "none".
func (s Strength) String() string {
	var has []string
	for i, name := range names {
		if s&(1<<i) != 0 {
			has = append(has, name)
		}
	}
	if len(has) == 0 {
		return "none"
	}
	return strings.Join(has, "|")
}

// leastSlot is the size of the smallest slots: a key of AES-128.
const leastSlot = 16

// Options are the options of a [Store].
type Options struct {
	// Need are properties that each secret must have. New and Make fail with ErrWeak if the system
	// refuses one, for instance at the limit of locked memory. Without Need they accept any
	// strength; see [Secret.Strength].
	Need Strength

	// Share puts several secrets of up to half a page into a page, by sizes rounded up to a power of
	// two, 16 bytes at least. A Use of one makes its neighbours readable too.
	Share bool
}

// A Store makes secrets. It is safe for concurrent use and needs no Close. A store with Share
// keeps no page without secrets.
type Store struct {
	need  Strength
	share bool

	mu   sync.Mutex
	room map[uintptr][]*chunk // chunks with a free slot, by the size of their slots
}

// NewStore returns a store. It takes no memory for secrets yet. It panics if o.Need has a property
// that does not exist.
func NewStore(o *Options) *Store {
	s := &Store{room: map[uintptr][]*chunk{}}
	if o != nil {
		arg.Range("secret.NewStore", "Need", int(o.Need), 0, 1<<len(names)-1)
		s.need, s.share = o.Need, o.Share
	}
	return s
}

// A Secret is bytes in memory that nothing but [Secret.Use] can read. They never change. A Secret
// that nothing refers to any more is destroyed by the collector, at some time.
//
// A secret with pages of its own costs about 230 bytes of Go's heap beside them. Printed or
// encoded, it shows none of its bytes.
type Secret struct{ slot *slot }

// A chunk is a run of pages between two guard pages. mu guards the fields below it; the store's mu
// guards free.
type chunk struct {
	addr, size uintptr
	slotBytes  uintptr
	strength   Strength
	free       []uint16 // the numbers of free slots

	mu               sync.Mutex
	ended            sync.Cond // a slot that is to be destroyed has no users any more
	access           vm.Access
	readers, writers int
}

// A slot holds one secret. Its bytes are zero before fill and after wipe. It has their address as a
// number, so that package fmt and others that follow pointers do not reach them.
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

// New makes a secret of a copy of b, and wipes b. On an error, b is unchanged; the error matches
// [ErrWeak], or the system has no memory. Other copies of b, such as the string that it was
// converted from, remain: [Store.Make] needs no copy.
//
// On Linux a process may have some 16,000 pages with secrets, a quarter of vm.max_map_count. With
// more, New and Make fail, and Go's runtime keeps mappings for itself.
func (s *Store) New(b []byte) (*Secret, error) {
	secret, err := s.Make(len(b), func(dst []byte) error { copy(dst, b); return nil })
	if err == nil {
		clear(b)
	}
	return secret, err
}

// Make makes a secret of size bytes that fill writes, for example by [crypto/rand.Read] or
// [io.ReadFull]. They are zero when fill begins. fill may not keep b, which has no alignment. If it
// returns an error or panics, its bytes are wiped, and Make returns the error.
//
// Make panics if size is negative or too large for memory.
func (s *Store) Make(size int, fill func(b []byte) error) (*Secret, error) {
	arg.Range("secret.Store.Make", "size", size, 0, int(^uint(0)>>2))
	sl, err := s.take(uintptr(size))
	if err != nil {
		return nil, err
	}
	made := false
	defer func() {
		if !made {
			_ = sl.destroy()
		}
	}()
	if err := sl.use(&sl.chunk.writers, fill); err != nil {
		return nil, err
	}
	made = true
	secret := &Secret{sl}
	runtime.AddCleanup(secret, func(sl *slot) { _ = sl.destroy() }, sl)
	return secret, nil
}

// Use calls f with the secret's bytes and returns its error. They are valid until f returns, and
// f may neither keep nor write them: both fault where the memory is Closed, unless another Use
// of the page runs. After a panic of f they are inaccessible again too.
//
// Any number of goroutines may Use a secret at once, and f may Use secrets, this one as well. Use
// returns [ErrDestroyed], and does not call f, if Destroy has begun. Another error is the
// system's refusal to open the memory, or to close it; the next Use tries again to close it.
//
// The Use that opens a page and the one that closes it each take a system call, which interrupts the
// other processors that run the program: several microseconds together. Other Uses take about 80 ns
// (BenchmarkUse).
func (s *Secret) Use(f func(b []byte) error) error {
	err := s.slot.use(&s.slot.chunk.readers, f)
	runtime.KeepAlive(s)
	return err
}

// Destroy waits until each Use of the secret has returned, and wipes it. A function that Use calls
// may not destroy its secret: Destroy would wait for itself. A second Destroy waits for the first
// and has no effect. The error is the system's refusal to open the memory. Then the bytes are not
// wiped but inaccessible, and the memory is not used again.
func (s *Secret) Destroy() error { return s.slot.destroy() }

// Len returns the number of bytes, after Destroy as well.
func (s *Secret) Len() int { return int(s.slot.size) }

// Strength returns the properties of the secret's memory.
func (s *Secret) Strength() Strength { return s.slot.chunk.strength }

func (sl *slot) bytes() []byte { return unsafe.Slice((*byte)(vm.Pointer(sl.addr)), sl.size) }

// use calls f between two changes of the count of the slot's users and of n, readers or writers of
// its chunk.
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

// count adds by to n and gives the pages the access that readers and writers ask for. If the
// system refuses to open the pages, n is as before. c.mu is held.
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

// take returns a free slot for size bytes, whose bytes are zero.
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

// newChunk returns a chunk of a page or more with slots that are all free.
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

func wholePages(size uintptr) uintptr { return (size + vm.PageBytes() - 1) &^ (vm.PageBytes() - 1) }

// ranges keeps the addresses of chunks that have gone, by size. Addresses are never given back to
// the system: Go's heap might grow into them while a slice of Use still refers to them.
var ranges = addresses{idle: map[uintptr][]uintptr{}}

type addresses struct {
	mu   sync.Mutex
	used int
	most int // of used; 0 until the first take
	idle map[uintptr][]uintptr
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
