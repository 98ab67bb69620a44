// Limbo: the statuses of spans that were freed, until nobody can have an entry that
// points to them.
//
// Two goroutines that free one block in the same few nanoseconds may both pass
// Free's check, and then two entries for it exist. The first of them to be
// allocated makes the block's status a live one, by which the second is found.
// The second may come much later, from a magazine that lay still: when the block
// has gone home, its span was freed, and its pages hold something else. So the
// statuses of a freed span are no free ones, and stay where they are until the
// caches were drained. Then no entry for the span is left anywhere.
//
//	statuses of a span ---release---> limbo ---drain---> free metadata
//
// That a drain leaves none is seen from where an entry can be: in a cache, in a
// central's stock, or with somebody who holds a slot or the central's lock. A
// drain first sees to it that there are no caches and that everybody has left the
// slots, and then empties the caches it took and the stocks, into the spans. Who
// frees a block after that looks at its span first, and finds none.
//
// What this does not find: the second entry is allocated in the same few
// nanoseconds as the first, or as the span is freed.

package heap

import (
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

const (
	inLimbo = 0 // the status of every block of a freed span; no free block has it

	minLimbo   = 256 << 10 // bytes that may be in limbo in any case ...
	limboShare = 32        // ... or this part of what the heap has committed
)

// limbo counts what is in the limbo of all classes of a heap.
type limbo struct {
	bytes atomic.Int64
	full  atomic.Bool // there is more than there may be
}

// bury moves the statuses of s into limbo.
func (c *central) bury(h *Heap, s *span) {
	class := &classes[c.class]
	clear(unsafe.Slice((*uint64)(vm.Pointer(s.statuses)), class.statusesBytes()/8))
	*s.free.word(0) = uint64(c.limbo)
	c.limbo = s.statuses
	h.noteLimbo(int64(roundUp(class.bitsBytes(), objectUnit)))
}

// drain is a class's part of the heap's drain: there are no caches.
func (c *central) drain(h *Heap) {
	c.shrink(h)
	c.mu.Lock()
	defer c.mu.Unlock()
	class := &classes[c.class]
	for c.limbo != 0 {
		statuses := c.limbo
		c.limbo = uintptr(*bitmap(statuses + class.statusesBytes()).word(0))
		h.pages.freeObject(statuses, class.bitsBytes())
		h.noteLimbo(-int64(roundUp(class.bitsBytes(), objectUnit)))
	}
}

// noteLimbo follows a change of what is in limbo.
func (h *Heap) noteLimbo(change int64) {
	bytes := h.limbo.bytes.Add(change)
	h.limbo.full.Store(bytes > minLimbo && bytes > int64(h.pages.held())/limboShare)
}

// retake takes the blocks of s that are live though s has them as free: each was
// allocated from an entry that was one too many. It looks at the statuses of free
// blocks alone, for those of others are being written.
func (c *central) retake(s *span) {
	// Four statuses at a time: both free ones differ in the lowest bit alone.
	const allFree = freeZero | freeZero<<16 | freeZero<<32 | freeZero<<48
	blocks := classes[c.class].blocks
	before := s.live
	for i := uintptr(0); i < blocks; i += 4 {
		in := *s.free.word(i / 64) >> (i % 64) & 15
		if in == 0 || in == 15 && *(*uint64)(vm.Pointer(s.statusOf(i)))&allFree == allFree {
			continue
		}
		for j := i; in != 0; j, in = j+1, in>>1 {
			if in&1 != 0 && *statusAt(s.statusOf(j)) < freeZero {
				s.free.clearRange(j, 1)
				s.live++
			}
		}
	}
	c.out += int(s.live - before)
	if before == 0 && s.live > 0 {
		c.empty--
	}
	if before < uint32(blocks) && s.live == uint32(blocks) {
		c.partial.remove(s)
	}
}

// replaceStatuses makes the statuses old of the blocks [from, to) new.
func (s *span) replaceStatuses(from, to uintptr, old, new uint16) {
	for i := from; i < to; i++ {
		if st := statusAt(s.statusOf(i)); *st == old {
			*st = new
		}
	}
}
