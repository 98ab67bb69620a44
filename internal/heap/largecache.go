// Large cache: the freed large blocks that a processor's cache keeps.
//
//	stacks   | 1 page | ... | 5 pages | ... | 8 pages | ... | 128 pages |
//	                             |               |
//	                            span            span
//	                                             |
//	                                            span
//
// A freed block of up to 1 MiB stays a large block of the page heap, with a size of 0, in the cache
// of the processor that freed it. The next Alloc of the same number of pages takes it from there.
// So neither call takes a lock, and no span is made, cut or joined.
//
// Free claims the block by a compare-and-swap of its size, as the page heap does when it frees or
// resizes one. So if two goroutines do that at once, only one of them succeeds, and each run is in
// at most one cache.
//
// A full cache returns some runs to the page heap and keeps the new one, whose memory is in the
// processor's caches. A drain returns all.

package heap

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/vm"
)

const (
	maxKeptPages = 1 << 20 / pages.PageBytes // of one run

	// All processors together keep this part of the heap's committed memory. Each keeps at least
	// minKeptBytes and at most maxKeptBytes, or one longer run. If there is a limit, all together
	// keep at most this part of it.
	keptShare    = 32
	minKeptBytes = 512 << 10
	maxKeptBytes = 16 << 20

	evictShare = 8 // the part of most that is evicted at once
)

// largeCache has the kept runs of one cache. Only the slot's holder uses it, but other
// goroutines read n and held by atomic loads.
//
// Invariants: n and held count the runs on the stacks, and held <= most, or n == 1 and
// held <= longest.
type largeCache struct {
	stacks  [maxKeptPages]uintptr // by pages less 1: spans, linked by Next
	n       uintptr               // runs
	held    uintptr               // their pages
	most    uintptr               // pages of several runs
	longest uintptr               // pages of one; 0 in noCache
	hand    uintptr               // the stack from which evict has taken last
}

// mostLarge returns the most and longest of a cache on p.
func mostLarge(p *pages.Heap) (most, longest uintptr) {
	if p.WholePages {
		return 0, 0
	}
	most, longest = mostKeptBytes(p.CommittedNow(), p.Limit(), uintptr(runtime.NumCPU()))
	return most / pages.PageBytes, longest / pages.PageBytes
}

// mostKeptBytes is mostLarge in bytes, for a heap with the given committed bytes and limit. A limit
// of 0 is none.
func mostKeptBytes(committed, limit, processors uintptr) (most, longest uintptr) {
	most, longest = min(max(minKeptBytes, committed/keptShare/processors), maxKeptBytes), maxKeptPages*pages.PageBytes
	if limit != 0 {
		part := limit / keptShare / processors
		most, longest = min(most, part), min(longest, part)
	}
	return most, longest
}

// stack returns the stack of runs of n pages.
func (l *largeCache) stack(n uintptr) *uintptr { return &l.stacks[(n-1)%maxKeptPages] }

// find returns a run for a block of size bytes at a multiple of align, or nil.
func (l *largeCache) find(size, align uintptr) *pages.Span {
	n := (size + pages.PageBytes - 1) / pages.PageBytes
	if n-1 >= maxKeptPages || *l.stack(n) == 0 || align-1 >= pages.PageBytes || align&(align-1) != 0 {
		return nil
	}
	return (*pages.Span)(vm.NonNil(*l.stack(n)))
}

// take makes s, from find, a block of size bytes.
func (l *largeCache) take(s *pages.Span, size uintptr) unsafe.Pointer {
	s.Size = size
	l.remove(s)
	return vm.NonNil(s.Base)
}

// remove removes s, the top of its stack.
func (l *largeCache) remove(s *pages.Span) {
	*l.stack(s.Pages()) = s.Next
	l.held -= s.Pages()
	l.n--
}

// hasRoom reports whether keep may keep a run of n pages.
func (l *largeCache) hasRoom(n uintptr) bool {
	return n <= l.longest && (l.held+n <= l.most || l.held == 0)
}

// keep keeps the run of a claimed block.
func (l *largeCache) keep(s *pages.Span) {
	top := l.stack(s.Pages())
	s.Next, *top = *top, s.Addr()
	l.held += s.Pages()
	l.n++
}

// evict makes room for a run of n pages, if it may be kept, and for a few more. It returns the
// evicted runs, linked by Next. Runs of n pages go first, because the new run can replace them.
func (l *largeCache) evict(n uintptr) (out uintptr) {
	if n > l.longest {
		n = 0 // it is not kept
	}
	if l.hasRoom(n) {
		return 0
	}
	for l.held > 0 && l.held+n > l.most-l.most/evictShare {
		from := l.stack(n)
		for *from == 0 {
			l.hand++
			from = l.stack(l.hand)
		}
		s := pages.SpanPtr(*from)
		l.remove(s)
		s.Next, out = out, s.Addr()
	}
	return out
}

// count returns the runs and their bytes. The holder of the slot may use l meanwhile.
func (l *largeCache) count() pages.LargeCount {
	return pages.LargeCount{Blocks: int(atomic.LoadUintptr(&l.n)), Bytes: atomic.LoadUintptr(&l.held) * pages.PageBytes}
}
