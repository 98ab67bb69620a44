// Limbo: the statuses of freed spans, while entries may still point to them.
//
// Free does not write the status atomically. Two goroutines that free one block in the
// same few nanoseconds may both pass Free's check, and then two entries for the block
// exist. The first entry to be allocated makes the status live, and Alloc detects the
// second by that.
//
// The second entry may come much later, from an idle magazine: after the block has
// returned to its span, the span was freed, and its pages are in other use. So the
// statuses of a freed span are set to inLimbo, which is not free, and their memory is
// not reused until the caches were drained. No entry for the span exists then.
//
//	statuses of a span ---release---> limbo ---drain---> free metadata
//
// # Why a drain leaves no entry
//
// An entry is in a cache, in a stock, or with a goroutine that holds a slot
// or a stock's lock. A drain takes all caches away, waits until every goroutine
// has left its slot, and returns what they held to the spans. Then it locks all
// stocks of a class, returns what these hold, and keeps them locked until the
// statuses are freed: otherwise a stock that was empty could get an entry whose
// span another stock's entries then free. returnBlocks drops entries of freed spans. A
// goroutine that frees a block later makes an entry only if the page map still has the
// block's span.
//
// Not detected: the second entry is allocated in the same few nanoseconds as the
// first, or while the span is being freed.

package heap

import (
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/vm"
)

const (
	inLimbo = 0xfffd // the status of the blocks of a freed span: neither free nor a size

	// Limbo is full if it has more than minLimbo bytes and more than this part of what
	// the heap has committed.
	minLimbo   = 256 << 10
	limboShare = 32
)

// limbo counts what all classes of a heap have in limbo.
type limbo struct {
	bytes atomic.Int64
	full  atomic.Bool // a drain is due
}

// bury moves the statuses of s into limbo, a list linked through the first word of
// each bitmap. The caller then frees the run; see lookup.go for the order. c.mu is
// held.
func (c *central) bury(h *Heap, s *span) {
	class := &classes[c.class]
	words := unsafe.Slice((*uint64)(vm.Pointer(s.statuses)), class.statusesBytes()/8)
	for i := range words {
		words[i] = inLimbo * 0x0001_0001_0001_0001
	}
	*s.free.Word(0) = uint64(c.limbo)
	c.limbo = s.statuses
	h.noteLimbo(int64(pages.RoundUp(class.bitsBytes(), pages.ObjectUnit)))
}

// freeLimbo frees the statuses in limbo. No cache has an entry, nor has a stock: mu and the stocks'
// locks are held.
func (c *central) freeLimbo(h *Heap) {
	class := &classes[c.class]
	for c.limbo != 0 {
		statuses := c.limbo
		c.limbo = uintptr(*pages.Bitmap(statuses + class.statusesBytes()).Word(0))
		h.pages.FreeObject(statuses, class.bitsBytes())
		h.noteLimbo(-int64(pages.RoundUp(class.bitsBytes(), pages.ObjectUnit)))
	}
}

// noteLimbo adds change to the bytes in limbo.
func (h *Heap) noteLimbo(change int64) {
	bytes := h.limbo.bytes.Add(change)
	h.limbo.full.Store(bytes > minLimbo && bytes > int64(h.pages.CommittedNow())/limboShare)
}

// markLiveAgain marks the blocks of s as live that are free in s but have a live status: each
// was allocated from the second entry of a block freed twice. It reads the statuses of
// the blocks that are free in s only; other goroutines write the others. c.mu is held.
func (c *central) markLiveAgain(s *span) {
	// Four statuses at a time: freeZero and freeDirty differ in the lowest bit only.
	const allFree = freeZero | freeZero<<16 | freeZero<<32 | freeZero<<48
	blocks := classes[c.class].blocks
	before := s.live
	for i := uintptr(0); i < blocks; i += 4 {
		in := *s.free.Word(i / 64) >> (i % 64) & 15
		if in == 0 || in == 15 && *(*uint64)(vm.Pointer(s.statusOf(i)))&allFree == allFree {
			continue
		}
		for j := i; in != 0; j, in = j+1, in>>1 {
			if in&1 != 0 && *statusAt(s.statusOf(j)) < freeZero {
				s.free.ClearRange(j, 1)
				s.live++
			}
		}
	}
	c.out += int(s.live - before)
	if before == 0 && s.live > 0 {
		c.empty--
	}
	if before < uint32(blocks) && s.live == uint32(blocks) {
		c.partial.Remove(&s.Span)
	}
}

// replaceStatuses changes the statuses of the blocks [from, to) that are old to new.
func (s *span) replaceStatuses(from, to uintptr, old, new uint16) {
	for i := from; i < to; i++ {
		if st := statusAt(s.statusOf(i)); *st == old {
			*st = new
		}
	}
}
