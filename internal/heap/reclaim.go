// Reclaim: giving memory back before a request is refused, and while the heap grows.
//
// Before a refusal, the heap takes these steps, the cheapest first. After each step that may have
// helped, it tries the request again:
//
//  1. PurgeFor purges free pages, if the limit then permits the request. Other goroutines continue.
//  2. reclaim drains the caches and depots, which frees empty spans. It stops the world.
//  3. PurgeFor again, for the pages that the drain freed.
//  4. The payer, if there is one, makes room elsewhere.
//
// An application's cache may use refusals as its signal to evict, and then fails many requests. So
// a heap with a limit rations step 2. It drains only if it has counted enough bytes that a drain
// could free, and it counts again only once it has refused a part of the limit. One drain serves
// all requests that wait for it.
//
// A heap that passes its watermark has the request's pages already: see growth.go of package pages.
// It flushes its caches if they hold much, and purges free pages.

package heap

import (
	"time"

	"github.com/freehold-go/freehold/internal/pages"
)

const (
	// A drain is worth its cost if it frees this part of the limit, or if the last drain was
	// drainPause ago. So no request is refused forever while the caches hold memory. A count is
	// worth its cost if requests for this part of the limit were refused since the last count, or
	// if that count was drainPause ago.
	drainShare = 32
	drainPause = 10 * time.Millisecond
)

// withReclaim calls f, which takes at most need pages. span tells whether they are for a span or
// for a large block. If f fails, withReclaim gives memory back and calls f again. It returns the
// last error of f. The caller holds no lock of the heap.
func (h *Heap) withReclaim(need uintptr, span bool, f func() error) error {
	err := f()
	if err == nil {
		h.grown()
		return nil
	}
	for _, giveBack := range [...]func(uintptr) bool{h.pages.PurgeFor, h.reclaim, h.pages.PurgeFor} {
		if err == nil || err == pages.ErrClosed {
			break
		}
		if giveBack(need) {
			err = f()
		}
	}
	if p := h.pages.Payer; err != nil && err != pages.ErrClosed && p != nil {
		bytes := (need + pages.SlackPages) * pages.PageBytes
		if span {
			bytes += h.pages.Slack()
		}
		if p.MakeRoom(int(bytes)) {
			err = f()
		}
	}
	if err == nil {
		h.grown()
	}
	return err
}

// A purge costs a page fault for each page that is used again. While the live bytes grow, the purge
// adds few faults, because the new blocks need fresh pages anyway. So a relief purges leastRelief
// bytes, and twice the growth of the live bytes since their maximum at earlier reliefs.
//
// After a relief the caches fill again, which may pass the watermark at once. So at least
// reliefCalls slow calls are between two reliefs. askCalls slow calls after ask, a processor that
// has not flushed its cache may be idle.
const (
	reliefCalls = 64
	askCalls    = 16
	leastRelief = 128 << 10
)

// grown is called after h has taken pages. The caller holds no lock of h.
func (h *Heap) grown() {
	if h.pages.Passed() {
		h.relieve()
	}
	pages.NoteGrowth()
}

// relieve gives memory back and raises the watermark. If it asks other processors to flush their
// caches, a later call does the rest. It is a no-op if too few slow calls have passed since the
// last relief, or if another goroutine holds Scavenging. Until the watermark is raised it stays
// passed, and each growth calls relieve. A tick also ends a relief.
func (h *Heap) relieve() {
	if !h.pages.Scavenging.TryLock() {
		return
	}
	defer h.pages.Scavenging.Unlock()
	wait := uint64(reliefCalls)
	if h.asked {
		wait = askCalls
	}
	calls := h.slowCalls()
	if calls-h.relieved < wait {
		return
	}
	h.relieved = calls
	before, n := h.pages.CommittedNow(), h.count()
	switch {
	case h.asked:
		h.asked = false
		h.pages.KeepSlabs(h.caches.drainIdle)
	case n.cachesHoldMuch(growthHoard):
		h.pages.KeepSlabs(func() { h.asked = h.caches.ask() })
		if h.asked {
			return
		}
	}
	grown := max(0, n.live-h.mostLive)
	h.pages.Purge(uintptr(leastRelief+2*grown) / pages.PageBytes)
	h.mostLive += grown
	h.pages.RaiseWatermark(before)
}

// reclaim drains the caches if that is worth its cost. It also retries the decommits and mappings
// that the system has refused. It reports whether another try may help.
func (h *Heap) reclaim(need uintptr) bool {
	limited := h.pages.Limit() != 0
	if limited && !h.mayCount(need) {
		return false
	}
	worth := !limited || h.worthADrain() // waits for an ongoing drain
	drainedAt := h.caches.drainedAt.Load()
	h.pages.Scavenging.Lock()
	defer h.pages.Scavenging.Unlock()
	if h.pages.Closed.Load() {
		return false
	}
	if worth && h.caches.drainedAt.Load() == drainedAt { // else another goroutine's drain serves
		h.caches.drain()
	}
	h.pages.RetryUnmapped()
	h.pages.RetryPurge()
	return true
}

// mayCount adds need to the refused pages. It reports whether a count of the bytes that a drain
// could free is worth its cost.
func (h *Heap) mayCount(need uintptr) bool {
	limit, now := h.pages.Limit()/pages.PageBytes, time.Now().UnixNano()
	refused := h.uncounted.Add(int64(min(need, limit)))
	if refused <= int64(limit/drainShare) && within(drainPause, h.countedAt.Load(), now) {
		return false
	}
	h.uncounted.Store(0)
	h.countedAt.Store(now)
	return true
}

// worthADrain counts the bytes that a drain could free, and reports whether a drain is worth its
// cost.
func (h *Heap) worthADrain() bool {
	c := h.count()
	gain := c.cached + c.emptySpans
	switch {
	case gain == 0:
		return false
	case gain >= int(h.pages.Limit()/drainShare):
		return true
	}
	return !within(drainPause, h.caches.drainedAt.Load(), time.Now().UnixNano())
}

// within reports whether then is less than d before now, in nanoseconds of Unix time.
// It is false if the clock was set back.
func within(d time.Duration, then, now int64) bool { return then <= now && now < then+int64(d) }
