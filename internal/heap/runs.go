// Runs: the freed large blocks that a cache keeps.
//
//	stacks   | 1 page | ... | 5 pages | ... | 8 pages | ... | 128 pages |
//	                             |               |
//	                            span            span
//	                                             |
//	                                            span
//
// A freed block of up to 1 MiB stays a large block of the page heap, with a size of 0, in the
// cache of the processor that freed it. The next Alloc of as many pages takes it from there.
// So neither takes a lock, and no span is made, cut or joined.
//
// Free claims the block by a compare-and-swap of the size, as the page heap does when it frees
// or resizes one. So of two goroutines that do that at once only one does, and each run is in
// one cache at most.
//
// A cache that is full returns some runs to the page heap, and keeps the new one, whose memory
// is in the processor's caches. A drain returns all.

package heap

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/vm"
	"github.com/freehold-go/freehold/internal/watch"
)

const (
	maxRunPages = 1 << 20 / pages.PageBytes // of a run that is kept

	// All processors together keep this part of what the heap has committed, but each
	// minRunBytes at least and maxRunBytes at most, or one longer run, and never more than this
	// part of the limit.
	runShare    = 32
	minRunBytes = 512 << 10
	maxRunBytes = 16 << 20

	evictShare = 8 // the part of most that is evicted at once
)

// runs has the runs of a cache. Its holder has it to itself; others read n and held by atomic
// loads.
//
// Invariants: n and held count the runs on the stacks, and held <= most, or n == 1 and
// held <= longest.
type runs struct {
	stacks  [maxRunPages]uintptr // by pages less 1: spans, linked by Next
	n       uintptr              // runs
	held    uintptr              // their pages
	most    uintptr              // pages of several runs
	longest uintptr              // pages of one; 0 in noCache
	hand    uintptr              // counts stacks that evict has looked at
}

// mostRuns returns the pages that the runs of a cache may take, and those of one run.
func (h *Heap) mostRuns() (most, longest uintptr) {
	if h.pages.WholePages {
		return 0, 0
	}
	most, longest = mostRunBytes(h.pages.CommittedNow(), h.pages.Limit(), uintptr(runtime.NumCPU()))
	return most / pages.PageBytes, longest / pages.PageBytes
}

// mostRunBytes is mostRuns in bytes, for a heap with so many bytes committed, and a limit unless
// that is 0.
func mostRunBytes(committed, limit, processors uintptr) (most, longest uintptr) {
	most, longest = min(max(minRunBytes, committed/runShare/processors), maxRunBytes), maxRunPages*pages.PageBytes
	if limit != 0 {
		part := limit / runShare / processors
		most, longest = min(most, part), min(longest, part)
	}
	return most, longest
}

// runLeaves are the leaves for large blocks, which call nothing: see leaf.go.
var (
	runLeaves = runFunctions{
		alloc: pin.Unpinned(allocRunLeaf, allocRunPinned, allocRunPinned),
		free:  pin.Unpinned(freeRunLeaf, freeRunPinned, freeRunPinned),
	}
	runsPinned = runFunctions{allocRunPinned, freeRunPinned}
)

type runFunctions struct {
	alloc func(h *Heap, size, align int, _, at uintptr) unsafe.Pointer
	free  func(h *Heap, addr uintptr, size int, _, at uintptr) bool
}

//go:nosplit
//go:noinline
//go:nocheckptr
func allocRunLeaf(h *Heap, size, align int, _, at uintptr) unsafe.Pointer {
	c := h.caches.Entry(pin.SlotAt(at))
	if c == nil { // of the zero Heap
		return nil
	}
	s := c.runs.find(uintptr(size), uintptr(align))
	left := c.after(size)
	if s == nil || left < 0 {
		return nil
	}
	c.left = left
	return c.runs.take(s, uintptr(size))
}

//go:nosplit
//go:noinline
//go:nocheckptr
func freeRunLeaf(h *Heap, addr uintptr, size int, _, at uintptr) bool {
	s := pages.Addresses.First.Span(addr)
	if s == nil || !s.IsLarge(h.pages.ID, addr, uintptr(size)) || !mayKeep(s) {
		return false
	}
	c := h.caches.Entry(pin.SlotAt(at))
	if !c.runs.hasRoom(s.Pages()) || !s.Claim(addr, uintptr(size)) {
		return false
	}
	c.runs.push(s)
	return true
}

func allocRunPinned(h *Heap, size, align int, _, _ uintptr) unsafe.Pointer {
	slot := h.caches.Enter()
	p := allocRunLeaf(h, size, align, 0, uintptr(slot))
	h.caches.Leave(slot)
	return p
}

func freeRunPinned(h *Heap, addr uintptr, size int, _, _ uintptr) bool {
	slot := h.caches.Enter()
	done := freeRunLeaf(h, addr, size, 0, uintptr(slot))
	h.caches.Leave(slot)
	return done
}

// mayKeep reports whether a cache may keep the run of a large block: nobody watches the block, it
// has no mapping of its own, and it is aligned as find's are.
func mayKeep(s *pages.Span) bool {
	return s.Separate == 0 && !spanOf(s).isLargeWatched() && s.Align() <= pages.PageBytes
}

// stack returns the stack of runs of n pages.
func (r *runs) stack(n uintptr) *uintptr { return &r.stacks[(n-1)%maxRunPages] }

// find returns a run for a block of size bytes at a multiple of align, or nil.
func (r *runs) find(size, align uintptr) *pages.Span {
	n := (size + pages.PageBytes - 1) / pages.PageBytes
	if n-1 >= maxRunPages || *r.stack(n) == 0 || align-1 >= pages.PageBytes || align&(align-1) != 0 {
		return nil
	}
	return (*pages.Span)(vm.NonNil(*r.stack(n)))
}

// take takes the run that find has found for size bytes.
func (r *runs) take(s *pages.Span, size uintptr) unsafe.Pointer {
	s.Size = size
	r.pop(s)
	return vm.NonNil(s.Base)
}

// pop removes s, the top of its stack.
func (r *runs) pop(s *pages.Span) {
	*r.stack(s.Pages()) = s.Next
	r.held -= s.Pages()
	r.n--
}

// hasRoom reports whether push may push a run of n pages.
func (r *runs) hasRoom(n uintptr) bool {
	return n <= r.longest && (r.held+n <= r.most || r.held == 0)
}

// push keeps the run of a block that was claimed.
func (r *runs) push(s *pages.Span) {
	top := r.stack(s.Pages())
	s.Next, *top = *top, s.Addr()
	r.held += s.Pages()
	r.n++
}

// evict makes room for a run of n pages, if it may be kept, and for some more. It returns what
// it removes, linked by Next. Runs of as many pages go first: there are others of that length.
func (r *runs) evict(n uintptr) (out uintptr) {
	if n > r.longest {
		n = 0 // it is not kept
	}
	if r.hasRoom(n) {
		return 0
	}
	for r.held > 0 && r.held+n > r.most-r.most/evictShare {
		from := r.stack(n)
		for *from == 0 {
			r.hand++
			from = r.stack(r.hand)
		}
		s := pages.SpanPtr(*from)
		r.pop(s)
		s.Next, out = out, s.Addr()
	}
	return out
}

// count returns the runs and their pages. The holder of the cache may be at work.
func (r *runs) count() pages.LargeCount {
	return pages.LargeCount{Blocks: int(atomic.LoadUintptr(&r.n)), Bytes: atomic.LoadUintptr(&r.held) * pages.PageBytes}
}

// allocRun is Alloc of a large block.
func (h *Heap) allocRun(size, align int, zero bool) ([]byte, error) {
	p := runLeaves.alloc(h, size, align, 0, 0)
	if p == nil {
		return h.allocSlow(size, align, zero)
	}
	return h.cleared(p, size, zero), nil
}

// freeRun is Free of a large block.
func (h *Heap) freeRun(b []byte) {
	if !runLeaves.free(h, addrOf(b), len(b), 0, 0) {
		h.freeSlow(b)
	}
}

// freeRunPointer is freeRun of the large block at addr. It reports false if there is none, or if
// a cache does not keep its run.
func (h *Heap) freeRunPointer(addr uintptr) bool {
	s := pages.Addresses.First.Span(addr)
	return s != nil && runLeaves.free(h, addr, int(s.Size), 0, 0)
}

// cleared returns the size bytes at p, in used memory, cleared if zero is set.
func (h *Heap) cleared(p unsafe.Pointer, size int, zero bool) []byte {
	if zero {
		h.clear(uintptr(p), uintptr(size))
	}
	return unsafe.Slice((*byte)(p), size)
}

// clear is apart, so that cleared is inlined.
//
//go:noinline
func (h *Heap) clear(addr, size uintptr) { h.pages.Clear(addr, size) }

// tryLarge is tryAlloc of a large block. Where blocks are counted, the leaf may have failed
// for that alone.
func (h *Heap) tryLarge(size, align int, zero bool, due *bool) (b []byte, err error) {
	if watch.Countdown.Rate.Load() != 0 && size > maxSmall {
		if p := h.takeRun(size, align, due); p != nil {
			return h.cleared(p, size, zero), nil
		}
	}
	b, err = h.allocLarge(size, align, zero)
	if err == nil && due != nil {
		*due = watch.Due(size)
	}
	return b, err
}

// takeRun returns a block from a cache, or nil. It sets due if somebody may want to watch it.
func (h *Heap) takeRun(size, align int, due *bool) unsafe.Pointer {
	slot := h.enter()
	defer h.caches.Leave(slot)
	c := h.caches.Entry(slot)
	if c == nil { // of the zero Heap
		return nil
	}
	s := c.runs.find(uintptr(size), uintptr(align))
	if s == nil {
		return nil
	}
	if due != nil {
		*due = c.due(size)
	}
	return c.runs.take(s, uintptr(size))
}

// keepRun keeps the run of b after the leaf has failed. It reports false if b is not a
// large block that a cache may keep.
func (h *Heap) keepRun(b []byte) (kept bool) {
	s := pages.SpanAt(addrOf(b))
	if s == nil || !s.IsLarge(h.pages.ID, addrOf(b), uintptr(len(b))) || !mayKeep(s) || s.Pages() > maxRunPages {
		return false
	}
	most, longest := h.mostRuns()
	if longest == 0 {
		return false
	}
	slot := h.enter()
	c := h.caches.Entry(slot)
	if c != &noCache {
		c.runs.most, c.runs.longest = most, longest
	}
	evicted := c.runs.evict(s.Pages())
	if kept = c.runs.hasRoom(s.Pages()) && s.Claim(addrOf(b), uintptr(len(b))); kept {
		c.runs.push(s)
	}
	h.caches.Leave(slot)
	if c == &noCache {
		h.addCache(slot)
	}
	h.pages.FreeRuns(evicted)
	return kept
}
