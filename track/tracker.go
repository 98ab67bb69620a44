// Tracker: the stack of each live block.
//
//	shard   address -> size, stack     of live blocks
//	        ring of freed blocks       the newest, for the messages of panics
//
// A block is in the shard of its address. It leaves the shard before next frees it, since
// another goroutine may have the address then, and comes back if next panics.

package track

import (
	"bufio"
	"fmt"
	"io"
	"sync"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/stacks"
)

const (
	shardBits  = 4
	shardFrees = 1 << 6 // that each shard remembers
)

// Tracker allocates from another allocator and records each live block with its call
// stack, whether heaps sample or not: for allocators that are no [freehold.Heap], such as
// an arena, cmalloc or one of your own. It reports leaks, and panics at each Free of what
// is not exactly a live block.
//
// It is safe for concurrent use if next is. A call costs a stack, a lock and an entry in a
// map (BenchmarkTracker). A Tracker takes 32 KiB on the Go heap, each live block about 50
// bytes, and each stack up to 1 KiB for good. All Trackers together keep 65,535 stacks.
//
// Make one with [NewTracker]. Alloc, Zeroed, Resize and Free of a zero Tracker panic.
type Tracker struct {
	next   freehold.Allocator
	shards [1 << shardBits]shard
}

// A shard has the blocks of a part of all addresses.
type shard struct {
	mu    sync.Mutex // guards the fields below
	live  map[uintptr]tracked
	freed [shardFrees]freed // a ring
	frees int               // so far
}

// tracked is a live block.
type tracked struct {
	size  int
	alloc stacks.ID
}

// holds reports whether addr is in k, which is at from.
func (k tracked) holds(from, addr uintptr) bool { return addr-from < uintptr(k.size) }

// freed is a block that was freed. It was at addr.
type freed struct {
	tracked
	addr uintptr
	free stacks.ID
}

// trackerStacks has the stacks of all Trackers.
var trackerStacks stacks.Table

// NewTracker returns a Tracker around next. It panics if next is nil. A Tracker needs no
// Close.
func NewTracker(next freehold.Allocator) *Tracker {
	arg.NotNil("track.NewTracker", "next", next)
	t := &Tracker{next: next}
	for i := range t.shards {
		t.shards[i].live = map[uintptr]tracked{}
	}
	return t
}

// Alloc implements [freehold.Allocator].
func (t *Tracker) Alloc(size, align int) ([]byte, error) {
	b, err := t.next.Alloc(size, align)
	t.add(b)
	return b, err
}

// Zeroed implements [freehold.Allocator].
func (t *Tracker) Zeroed(size, align int) ([]byte, error) {
	b, err := t.next.Zeroed(size, align)
	t.add(b)
	return b, err
}

// Resize implements [freehold.Allocator]. A resized block has the stack of Resize. It
// panics as Free does.
func (t *Tracker) Resize(b []byte, size int) (r []byte, ok bool) {
	if len(b) == 0 {
		return t.next.Resize(b, size)
	}
	block := t.take("track.Tracker.Resize", b)
	defer func() {
		if !ok {
			t.put(addrOf(b), block)
		}
	}()
	if r, ok = t.next.Resize(b, size); ok {
		t.add(r)
	}
	return r, ok
}

// Free implements [freehold.Allocator]. It panics, before next is called, unless b is
// exactly a live block of t. The message says what b is: a part of a live block, with
// the stack of its allocation, a block that was freed, with that of its Free too, or
// nothing of t's. About the last 1,000 freed blocks are remembered.
func (t *Tracker) Free(b []byte) {
	if len(b) == 0 {
		t.next.Free(b)
		return
	}
	block := t.take("track.Tracker.Free", b)
	done := false
	defer func() {
		if !done {
			t.put(addrOf(b), block)
		}
	}()
	t.next.Free(b)
	done = true
	t.remember(freed{block, addrOf(b), trackerStacks.Capture(0)})
}

// Owns implements [freehold.Owner] by next's Owns. If next is not an Owner, it is true in
// live blocks, all of which it looks at.
func (t *Tracker) Owns(b []byte) (owns bool) {
	if o, ok := t.next.(freehold.Owner); ok || len(b) == 0 {
		return ok && o.Owns(b)
	}
	t.each(func(from uintptr, k tracked) { owns = owns || k.holds(from, addrOf(b)) })
	return owns
}

// GoodSize returns next's GoodSize of size, or size if next has none.
func (t *Tracker) GoodSize(size int) int {
	if g, ok := t.next.(interface{ GoodSize(size int) int }); ok {
		return g.GoodSize(size)
	}
	return max(size, 0)
}

// Live returns the number of live blocks, empty ones not included, and the sum of their
// lengths.
func (t *Tracker) Live() (blocks, bytes int) {
	t.each(func(_ uintptr, k tracked) {
		blocks++
		bytes += k.size
	})
	return blocks, bytes
}

// String returns the live blocks:
//
//	tracker: 2 blocks, 300 bytes live
func (t *Tracker) String() string {
	if t == nil {
		return "<nil>"
	}
	return "tracker: " + sum(t.Live()) + " live"
}

// Leaks returns the live blocks by stack, the most bytes first.
func (t *Tracker) Leaks() []Leak {
	byID := map[stacks.ID]Leak{}
	t.each(func(_ uintptr, k tracked) {
		l := byID[k.alloc]
		l.Blocks++
		l.Bytes += int64(k.size)
		byID[k.alloc] = l
	})
	var all []Leak
	at := map[string]int{}
	for id, l := range byID {
		l.Stack = stackOf(id)
		// Stacks differ in the frames that are left out.
		if i, found := at[keyOf(l.Stack)]; found {
			all[i].Blocks += l.Blocks
			all[i].Bytes += l.Bytes
			continue
		}
		at[keyOf(l.Stack)] = len(all)
		all = append(all, l)
	}
	mostBytesFirst(all)
	return all
}

// WriteLeaks writes what Leaks returns as text, as the function [WriteLeaks] does. The
// error is w's.
func (t *Tracker) WriteLeaks(w io.Writer) error {
	b := bufio.NewWriter(w)
	writeLeaks(b, t.Leaks(), "live", 1)
	return b.Flush()
}

// add records b, which was just allocated, for the caller's caller.
func (t *Tracker) add(b []byte) {
	if len(b) > 0 {
		t.put(addrOf(b), tracked{len(b), trackerStacks.Capture(0)})
	}
}

func (t *Tracker) put(addr uintptr, k tracked) {
	s := t.shard(addr)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live[addr] = k
}

// take removes the live block b, or panics and says what b is instead.
func (t *Tracker) take(call string, b []byte) tracked {
	addr := addrOf(b)
	s := t.shard(addr)
	s.mu.Lock()
	k, found := s.live[addr]
	if found && k.size == len(b) {
		delete(s.live, addr)
	}
	s.mu.Unlock()
	if !found || k.size != len(b) {
		arg.Panicf(call, "%s at %#x, %s", arg.Bytes(len(b)), addr, t.whatIs(addr))
	}
	return k
}

func (t *Tracker) remember(f freed) {
	s := t.shard(f.addr)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freed[s.frees%len(s.freed)] = f
	s.frees++
}

// whatIs describes an address at which no live block begins that the caller means.
func (t *Tracker) whatIs(addr uintptr) string {
	what := "which this Tracker did not allocate; was it moved by append?"
	t.eachFreed(func(f freed) {
		if f.holds(f.addr, addr) {
			what = fmt.Sprintf("which is in a freed block of %s\nallocated at:\n%sfreed at:\n%s", arg.Bytes(f.size),
				stacks.Text(stackOf(f.alloc), "\t"), stacks.Text(stackOf(f.free), "\t"))
		}
	})
	t.each(func(from uintptr, k tracked) {
		if k.holds(from, addr) {
			what = fmt.Sprintf("which is at byte %d of a live block of %s\nallocated at:\n%s", addr-from, arg.Bytes(k.size),
				stacks.Text(stackOf(k.alloc), "\t"))
		}
	})
	return what
}

// each calls f for each live block.
func (t *Tracker) each(f func(addr uintptr, k tracked)) {
	t.eachShard(func(s *shard) {
		for addr, k := range s.live {
			f(addr, k)
		}
	})
}

// eachFreed calls f for each freed block that is remembered, in each shard the newest last.
func (t *Tracker) eachFreed(f func(freed)) {
	t.eachShard(func(s *shard) {
		for i := max(0, s.frees-len(s.freed)); i < s.frees; i++ {
			f(s.freed[i%len(s.freed)])
		}
	})
}

func (t *Tracker) eachShard(f func(*shard)) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		f(s)
		s.mu.Unlock()
	}
}

// shard returns the shard of an address.
func (t *Tracker) shard(addr uintptr) *shard {
	return &t.shards[uint64(addr)*0x9e3779b97f4a7c15>>(64-shardBits)]
}

// stackOf returns a stack from the caller of the Tracker on.
func stackOf(id stacks.ID) []uintptr {
	pcs, _ := trackerStacks.Stack(id)
	return stacks.Outside(pcs, "track")
}

func addrOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
