// Kept runs: the freed large blocks that a processor's cache keeps.
//
//	stacks   | 1 page | ... | 5 pages | ... | 8 pages | ... | 128 pages |
//	                             |               |
//	                            span            span
//	                                             |
//	                                            span
//
// The cache of the processor that frees a block of up to 1 MiB keeps its run. For the page heap the
// run stays a large block, of size 0. The next Alloc of the same number of pages on this processor
// takes the run. So neither call takes a lock, and no run is split or merged.
//
// Free claims the block by a compare-and-swap of its size. The page heap does the same when it
// frees or resizes a block. If two goroutines do so at once, only one of them succeeds. So each run
// is in at most one cache.
//
// A full cache evicts some runs to the page heap and keeps the new one: its memory was used last,
// so it is likely in the processor's L2. A drain returns all runs.

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

	// Each cache keeps an equal share of this part of the heap's committed memory, but at least
	// minKeptBytes and at most maxKeptBytes. A cache without another run may keep a longer one. If
	// the heap has a limit, all caches together keep at most this part of the limit.
	keptShare    = 32
	minKeptBytes = 512 << 10
	maxKeptBytes = 16 << 20

	evictShare = 8 // evict leaves this part of mostHeld free, besides the new run
)

// keptRuns is the part of a cache for kept runs. Only the slot's holder uses it. Other goroutines
// read n and held by atomic loads.
//
// Invariants: n and held count the runs on the stacks, and held <= mostHeld, or n == 1
// and held <= longest.
type keptRuns struct {
	stacks   [maxKeptPages]uintptr // stacks[i] has the spans of i+1 pages, linked by Next
	n        uintptr               // runs
	held     uintptr               // their pages
	mostHeld uintptr               // bound of held, if there are several runs
	longest  uintptr               // bound of the pages of one run; 0 in noCache
	hand     uintptr               // the stack from which evict last took a run
}

// mostKept returns the fields mostHeld and longest for the caches of a heap on p.
func mostKept(p *pages.Heap) (most, longest uintptr) {
	if p.WholePages {
		return 0, 0
	}
	most, longest = mostKeptBytes(p.CommittedNow(), p.Limit(), uintptr(runtime.NumCPU()))
	return most / pages.PageBytes, longest / pages.PageBytes
}

// mostKeptBytes is mostKept in bytes, for a heap with the given committed bytes and limit. Limit 0
// means no limit.
func mostKeptBytes(committed, limit, processors uintptr) (most, longest uintptr) {
	most, longest = min(max(minKeptBytes, committed/keptShare/processors), maxKeptBytes), maxKeptPages*pages.PageBytes
	if limit != 0 {
		part := limit / keptShare / processors
		most, longest = min(most, part), min(longest, part)
	}
	return most, longest
}

// stack returns the stack of runs of n pages.
func (l *keptRuns) stack(n uintptr) *uintptr { return &l.stacks[(n-1)%maxKeptPages] }

// find returns a run for a block of size bytes at a multiple of align, or nil.
func (l *keptRuns) find(size, align uintptr) *pages.Span {
	n := (size + pages.PageBytes - 1) / pages.PageBytes
	if n-1 >= maxKeptPages || *l.stack(n) == 0 || align-1 >= pages.PageBytes || align&(align-1) != 0 {
		return nil
	}
	return (*pages.Span)(vm.NonNil(*l.stack(n)))
}

// take removes s, which find returned, and makes it a live block of size bytes.
func (l *keptRuns) take(s *pages.Span, size uintptr) unsafe.Pointer {
	s.Size = size
	l.remove(s)
	return vm.NonNil(s.Base)
}

// remove removes s, the top of its stack.
func (l *keptRuns) remove(s *pages.Span) {
	*l.stack(s.Pages()) = s.Next
	l.held -= s.Pages()
	l.n--
}

// isPlain reports whether a cache may keep the run of a large block. It may not if the block is
// watched, has a mapping of its own, or has an alignment of more than a page, which find does not
// look for.
func isPlain(s *pages.Span) bool {
	return s.Separate == 0 && !isLargeWatched(s) && s.Align() <= pages.PageBytes
}

// hasRoom reports whether keep may keep a run of n pages.
func (l *keptRuns) hasRoom(n uintptr) bool {
	return n <= l.longest && (l.held+n <= l.mostHeld || l.held == 0)
}

// keepLive claims the block of size bytes at addr, and keeps its run s. It reports false if there
// is no such block.
func (l *keptRuns) keepLive(s *pages.Span, addr, size uintptr) bool {
	if !s.Claim(addr, size) {
		return false
	}
	l.keep(s)
	return true
}

// keep keeps the run of a claimed block.
func (l *keptRuns) keep(s *pages.Span) {
	top := l.stack(s.Pages())
	s.Next, *top = *top, s.Addr()
	l.held += s.Pages()
	l.n++
}

// evict makes room for a run of n pages, and for a few more. If such a run is too long to be kept,
// it evicts only while the cache exceeds its bound. It returns the evicted runs, linked by Next.
// Runs of n pages are evicted first, because the new run can replace them.
func (l *keptRuns) evict(n uintptr) (out uintptr) {
	if n > l.longest {
		n = 0 // it is not kept
	}
	if l.hasRoom(n) {
		return 0
	}
	for l.held > 0 && l.held+n > l.mostHeld-l.mostHeld/evictShare {
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

// count returns the number of runs and their bytes. The holder of the slot may use l meanwhile.
func (l *keptRuns) count() pages.LargeCount {
	return pages.LargeCount{Blocks: int(atomic.LoadUintptr(&l.n)), Bytes: atomic.LoadUintptr(&l.held) * pages.PageBytes}
}
