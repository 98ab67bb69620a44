// Watched blocks: what the engine knows of package watch.
//
//	Alloc --countdown--> h.watch.Alloc     Free, Resize --status or flag--> h.watch.Free, .Resize
//
// A watched block is one whose status is watched, or whose span has that flag if it is
// large, or one in a guard run. Its size is known to package watch alone. When it becomes
// an ordinary block again, its status is its size again.

package heap

import (
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/watch"
)

func init() { // after that of fast_amd64.go
	watch.OnChange(func(counting bool) {
		countInAssembly(counting)
		EachOpen(func(h *Heap) { h.restartCountdowns() })
	})
}

// restartCountdowns empties the caches, of which a closed heap has none. New ones begin with new countdowns.
func (h *Heap) restartCountdowns() {
	h.pages.Scavenging.Lock()
	defer h.pages.Scavenging.Unlock()
	if h.hasCaches() {
		h.drain()
	}
}

// due counts size bytes down, which c has just served, and reports whether the
// countdown ended: the block may be watched. The slot is held.
func (c *cache) due(size int) bool {
	if left := c.after(size); left >= 0 {
		c.left = left
		return false
	}
	c.left = watch.Gap()
	return true
}

// isWatched reports whether addr is in a watched block or a guard run of owner's. Package watch
// knows whether the block begins there.
func (s *span) isWatched(owner uint32, addr uintptr) bool {
	if s == nil || s.Owner != owner {
		return false
	}
	switch s.Kind {
	case pages.LargeRun:
		return s.isLargeWatched()
	case pages.BlockRun:
		return *statusAt(s.statusOf(s.index(addr))) == watched
	}
	return s.Kind == pages.GuardRun
}

// isLargeWatched is isWatched of the large block of s. Others may mark it meanwhile.
func (s *span) isLargeWatched() bool { return atomic.LoadUint32(&s.watched) != 0 }

// engine is the heap as package watch sees it.
type engine Heap

func (e *engine) Alloc(size, align int, zero bool) ([]byte, error) {
	return (*Heap)(e).allocUnwatched(size, align, zero, nil)
}

func (e *engine) Free(b []byte) { (*Heap)(e).Free(b) }

func (e *engine) Resize(call string, b []byte, size int) ([]byte, bool) {
	return (*Heap)(e).resizeBlock(call, b, size)
}

func (e *engine) GoodSize(size int) (bytes int, small bool) {
	return (*Heap)(e).goodSize(size), size <= maxSmall
}

func (e *engine) Misused(call string, b []byte) { (*Heap)(e).misused(call, b) }

func (e *engine) Mark(b []byte)   { mark(b, true) }
func (e *engine) Unmark(b []byte) { mark(b, false) }

// mark sets what says whether the live block b is watched.
func mark(b []byte, is bool) {
	addr, status, flag := addrOf(b), uint16(len(b)), uint32(0)
	if is {
		status, flag = watched, 1
	}
	switch s := spanAt(addr); s.Kind {
	case pages.BlockRun:
		*statusAt(s.statusOf(s.index(addr))) = status
	case pages.LargeRun:
		atomic.StoreUint32(&s.watched, flag)
	}
}

// Tag makes b, if it is a sampled block of a heap, count for the tag instead of the one
// that it had, or none. It is a no-op for any other slice, and if there is no room for
// the tag. While sampling is off it costs a load.
func Tag(b []byte, tag string) {
	if watch.SampleRate() != 0 {
		tagWatched(b, tag)
	}
}

// tagWatched is Tag apart, so that Tag is inlined.
func tagWatched(b []byte, tag string) {
	addr := addrOf(b)
	if s := spanAt(addr); s != nil && s.isWatched(s.Owner, addr) {
		watch.Tag(b, tag)
	}
}

// GoPointers returns the words of live blocks that are addresses in the Go heap: see package
// watch.
func (h *Heap) GoPointers() ([]watch.GoPointer, error) {
	h.mustBeMade("track.CheckPointers")
	return watch.GoPointers(h.walk)
}

// Watch returns the watched blocks of h.
func (h *Heap) Watch() *watch.Heap { return &h.watch }
