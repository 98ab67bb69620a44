// Limbo: the statuses of freed spans, while entries may still point to them.
//
// Free does not write the status atomically. Two goroutines that free one block within a few
// nanoseconds may both pass Free's check, and then the block has two entries. The first entry to be
// allocated makes the status live, and Alloc detects the second entry by that.
//
// The second entry may stay in an idle magazine until the block has returned to its span, the span
// was freed, and its pages have another use. So bury sets the statuses of a freed span to InLimbo,
// which is not free, and their memory is not reused until a drain. No entry of the span exists
// then.
//
//	statuses of a span ---release---> limbo ---drain---> free metadata
//
// # Why a drain leaves no entry
//
// An entry is in a cache, in a depot, or with a goroutine that holds a slot or a depot's lock. A
// drain takes all caches away, waits until every goroutine has left its slot, and returns their
// blocks to the spans. Then it locks all depots of a class, returns their blocks, and keeps the
// locks until the statuses are freed. Without the locks an empty depot could get an entry whose
// span is then freed by the entries of another depot. restoreAll drops entries of freed spans. A
// goroutine that frees a block later makes an entry only if the page map still has the block's
// span.
//
// Not detected: the second entry is allocated within a few nanoseconds of the first, or while the
// span is being freed.

package small

import (
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/vm"
)

const (
	// Limbo is full if it has more than minLimbo bytes and more than this part of the heap's
	// committed memory.
	minLimbo   = 256 << 10
	limboShare = 32
)

// limbo counts what all classes of a heap have in limbo.
type limbo struct {
	bytes atomic.Int64
	full  atomic.Bool // a drain is due
}

// LimboBytes returns the bytes in limbo.
func (h *Heap) LimboBytes() int { return int(h.limbo.bytes.Load()) }

// LimboIsFull reports whether a drain is due.
func (h *Heap) LimboIsFull() bool { return h.limbo.full.Load() }

// bury moves the statuses of s into limbo, a list linked through the first word of each bitmap.
// The caller then frees the run; see lookup.go for the order. c.mu is held.
func (c *central) bury(h *Heap, s *Span) {
	class := &classes[c.class]
	words := unsafe.Slice((*uint64)(vm.Pointer(s.statuses)), class.statusesBytes()/8)
	for i := range words {
		words[i] = InLimbo * 0x0001_0001_0001_0001
	}
	*s.free.Word(0) = uint64(c.limbo)
	c.limbo = s.statuses
	h.noteLimbo(int64(pages.RoundUp(class.bitsBytes(), pages.ObjectUnit)))
}

// freeLimbo frees the statuses in limbo. No cache and no depot has an entry. mu and the depots'
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

// markLiveAgain marks blocks as not free in s whose status is live: each was allocated from the
// second entry of a block that was freed twice. It reads only the statuses of blocks that are free
// in s; other goroutines write the others. c.mu is held.
func (c *central) markLiveAgain(s *Span) {
	// Four statuses at a time: FreeZero and FreeDirty differ in the lowest bit only.
	const allFree = FreeZero | FreeZero<<16 | FreeZero<<32 | FreeZero<<48
	blocks := classes[c.class].blocks
	before := s.live
	for i := uintptr(0); i < blocks; i += 4 {
		in := *s.free.Word(i / 64) >> (i % 64) & 15
		if in == 0 || in == 15 && *(*uint64)(vm.Pointer(s.statusOf(i)))&allFree == allFree {
			continue
		}
		for j := i; in != 0; j, in = j+1, in>>1 {
			if in&1 != 0 && *StatusAt(s.statusOf(j)) < FreeZero {
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
