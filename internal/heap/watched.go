// Watched blocks: the marks of the blocks that package watch observes.
//
//	Alloc --countdown--> h.watch.Alloc     Free, Resize --status or flag--> h.watch.Free, .Resize
//
// A small block is watched if its status is small.Watched, and a large one if its span has the flag
// Watched. Every block in a guard run is watched. Only package watch knows the sizes of watched
// blocks. mark sets the status back to the size when a small block is no longer watched.

package heap

import (
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/small"
	"github.com/freehold-go/freehold/internal/watch"
)

// isWatched reports whether addr is in a watched block or a guard run of owner. s is the span at
// addr. isWatched does not check that the block begins at addr: package watch does.
func isWatched(s *small.Span, owner uint32, addr uintptr) bool {
	if s == nil || s.Owner != owner {
		return false
	}
	switch s.Kind {
	case pages.LargeRun:
		return isLargeWatched(&s.Span)
	case pages.BlockRun:
		return *s.Status(addr) == small.Watched
	}
	return s.Kind == pages.GuardRun
}

// isLargeWatched is isWatched of the large block of s. Other goroutines may mark it meanwhile.
func isLargeWatched(s *pages.Span) bool { return atomic.LoadUint32(&s.Watched) != 0 }

// mark marks the live block b as watched, or as not watched.
func mark(b []byte, is bool) {
	addr, status, flag := small.AddrOf(b), uint16(len(b)), uint32(0)
	if is {
		status, flag = small.Watched, 1
	}
	switch s := small.SpanAt(addr); s.Kind {
	case pages.BlockRun:
		*s.Status(addr) = status
	case pages.LargeRun:
		setFlag(&s.Watched, flag)
	}
}

// setFlag is a store without the locked instruction of an atomic one. Readers load atomically, so
// the race detector need not see it.
//
//go:norace
func setFlag(flag *uint32, to uint32) { *flag = to }

// Tag sets the tag under which the sampled block b counts. It replaces an earlier tag. It is a
// no-op if b is not a sampled block of a heap, or if there is no room for the tag. While sampling
// is off it costs one load.
func Tag(b []byte, tag string) {
	if watch.SampleRate() != 0 {
		tagWatched(b, tag)
	}
}

// tagWatched is separate, so that Tag is inlined.
func tagWatched(b []byte, tag string) {
	addr := small.AddrOf(b)
	if s := small.SpanAt(addr); s != nil && isWatched(s, s.Owner, addr) {
		watch.Tag(b, tag)
	}
}
