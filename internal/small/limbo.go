// Limbo: the statuses of freed spans, while entries may still point to them.
//
// Free does not write the status atomically. If two goroutines free one block within a few
// nanoseconds, both may pass Free's check, and the block has two entries. When Alloc takes the
// first entry, it makes the status live. When it takes the second, it finds the live status and
// detects the double free.
//
// The second entry may stay in an idle magazine until its span is freed and the pages are reused.
// So bury sets the statuses of a freed span to InLimbo, which is not a free status. The memory of
// the statuses is not reused until a drain has removed all entries of the span.
//
//	statuses of a span ---release---> limbo ---drain---> free metadata
//
// # Why a drain leaves no entry
//
// An entry is in a cache, in a depot, or with a goroutine that holds a slot or a depot's lock. A
// drain takes all caches away, waits until every goroutine has left its slot, and returns their
// blocks to the spans. Then it locks all depots of a class, returns their blocks, and keeps the
// locks until the statuses are freed. Without the locks, an entry could get into a depot that was
// emptied earlier, and then the blocks of another depot could free the entry's span. restoreAll
// drops entries of freed spans. A goroutine that frees a block later makes an entry only if the
// page map still has the block's span.
//
// A double free goes undetected if Alloc takes both entries within a few nanoseconds of each other,
// or takes the second one while the span is being freed or its memory decommitted.

package small

import (
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/vm"
)

const (
	// A drain is due if limbo has more than minLimbo bytes and more than this part of the heap's
	// committed memory.
	minLimbo   = 256 << 10
	limboShare = 32
)

// limbo counts the bytes that all classes of a heap have in limbo.
type limbo struct {
	bytes atomic.Int64
	due   atomic.Bool // a drain is due
}

// LimboBytes returns the bytes in limbo.
func (h *Heap) LimboBytes() int { return int(h.limbo.bytes.Load()) }

// DrainIsDue reports whether a drain should free the statuses in limbo.
func (h *Heap) DrainIsDue() bool { return h.limbo.due.Load() }

// bury pushes the statuses of s onto c's limbo list. The first word of each bitmap links the list.
// The caller frees the run afterwards: span.go gives the reason for this order. c.mu is held.
// A wrong Free may read the statuses meanwhile: see replaceStatuses.
//
//go:norace
func (c *central) bury(h *Heap, s *Span) {
	class := &classes[c.class]
	words := unsafe.Slice((*uint64)(vm.Pointer(s.statuses)), class.statusesBytes()/8)
	for i := range words {
		words[i] = InLimbo * 0x0001_0001_0001_0001
	}
	*s.free.Word(0) = uint64(c.limbo)
	c.limbo = s.statuses
	h.noteLimbo(int64(vm.RoundUp(class.metadataBytes(), pages.ObjectUnit)))
}

// freeLimbo frees the statuses in limbo. No cache and no depot has an entry. mu and the depots'
// locks are held.
func (c *central) freeLimbo(h *Heap) {
	class := &classes[c.class]
	for c.limbo != 0 {
		statuses := c.limbo
		c.limbo = uintptr(*pages.Bitmap(statuses + class.statusesBytes()).Word(0))
		h.pages.FreeObject(statuses, class.metadataBytes())
		h.noteLimbo(-int64(vm.RoundUp(class.metadataBytes(), pages.ObjectUnit)))
	}
}

// noteLimbo adds change to the bytes in limbo.
func (h *Heap) noteLimbo(change int64) {
	bytes := h.limbo.bytes.Add(change)
	h.limbo.due.Store(bytes > minLimbo && bytes > int64(h.pages.CommittedNow())/limboShare)
}
