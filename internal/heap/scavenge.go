// Scavenge: giving back unused memory, over time or at once.
//
// While there is memory to give back, a timer ticks three times per decay. A tick gives back memory
// that was not used since the last tick, in this order:
//
//  1. Small blocks: see small.Heap.Tick.
//  2. The caches, by a drain, if no class has moved a block or the caches hold much. Two drains by
//     ticks are at least a decay apart, because a drain stops the world.
//  3. Dirty free pages, up to their low-water mark since the last tick. This step is last because
//     the others free pages. Long free runs are purged sooner: see oversize.go of package pages.
//
// There is no background goroutine, and a heap at rest has no timer.

package heap

import (
	"github.com/freehold-go/freehold/internal/pages"
)

const ticksBetweenDrain = pages.TicksPerDecay

// tick gives back memory that was not used since the last tick. It sets the next tick if there is
// more to give back.
func (h *Heap) tick() {
	h.pages.Scavenging.Lock()
	defer h.pages.Scavenging.Unlock()
	if h.pages.Closed.Load() {
		return
	}
	h.pages.Alarm.Stop()
	h.ticks++
	h.mostLive -= h.mostLive / pages.StepShare
	h.asked = false // PurgeUnused sets a watermark that is not passed, which ends a relief
	busy := h.small.Tick()
	cached := h.caches.exist() || h.small.LimboBytes() > 0
	if cached && h.ticks-h.drained >= ticksBetweenDrain && (!busy || h.count().cachesHoldMuch(tickHoard)) {
		h.drained, cached = h.ticks, false
		if busy {
			h.caches.drain()
		} else {
			h.caches.drainPatiently()
		}
		h.small.Punch()
	}
	h.pages.RetryUnmapped()
	if more := h.pages.PurgeUnused(); more || busy || cached {
		h.pages.Wake()
	}
}

// Purge gives back free pages, at most about the given number of bytes.
func (h *Heap) Purge(bytes int) {
	h.pages.Scavenging.Lock()
	defer h.pages.Scavenging.Unlock()
	if !h.pages.Closed.Load() {
		h.pages.Purge(uintptr(bytes)/pages.PageBytes + pages.SlackPages)
	}
}

// TrimSpare trims h if it has at least a page to give back. It leaves the quarantine alone. It is a
// no-op after Close.
func (h *Heap) TrimSpare() {
	n := h.count()
	if spare := n.cached + n.emptySpans + int(h.pages.Figures().Dirty); spare >= pages.PageBytes {
		h.tryTrim()
	}
}

// Trim gives back all memory without live blocks at once.
func (h *Heap) Trim() {
	h.watch.Release()
	if !h.tryTrim() {
		h.mustBeOpen("Heap.Trim")
	}
}

// tryTrim is Trim, but leaves the quarantine alone, because Close may be emptying it. It reports
// false if h is closed.
func (h *Heap) tryTrim() bool {
	h.mustBeMade("Heap.Trim")
	h.pages.Scavenging.Lock()
	defer h.pages.Scavenging.Unlock()
	if h.pages.Closed.Load() {
		return false
	}
	h.caches.drain()
	h.small.Punch()
	h.pages.RetryUnmapped()
	h.pages.RetryPurge()
	h.pages.Purge(^uintptr(0))
	return true
}

// TrimAll trims each open heap, but leaves quarantines alone. Init and Close of heaps do not wait
// for it.
func TrimAll() {
	for _, h := range registry.All() {
		h.tryTrim()
	}
}

// restartCountdowns drains the caches, because each new cache begins a new countdown. A closed heap
// has no caches.
func (h *Heap) restartCountdowns() {
	h.pages.Scavenging.Lock()
	defer h.pages.Scavenging.Unlock()
	if h.caches.exist() {
		h.caches.drain()
	}
}
