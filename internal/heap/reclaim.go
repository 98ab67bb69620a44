// Reclaim: what a heap does before it refuses a request.
//
// First, memory of free pages goes back to the system where that makes room for
// others under the limit. Then all that caches and stocks hold is drained to the
// spans. A drain stops the world, and a cache that lives at its limit is refused
// at every other request. So the heap first counts what a drain could bring, and
// under a large limit it does not even count each time.

package heap

import "time"

const (
	// A drain is worth its cost from this part of the limit on ...
	drainShare = 32
	// ... or if so long has passed since the last, so that nobody is refused
	// for good what the caches hold.
	drainPause = 10 * time.Millisecond

	// Counting costs some microseconds: it is done at one refusal for each so
	// many bytes of the limit, and at one that comes drainPause after the last
	// count.
	countBytes = 2 << 20

	// What a request may need beside its pages: slabs for a span, its statuses and a
	// magazine, and tables.
	slackPages = 4 * slabBytes / pageBytes
)

// withReclaim calls f, which allocates that many pages at most, and where f finds
// no memory gives some back and tries again. No lock of the heap is held.
func (h *Heap) withReclaim(pages uintptr, f func() error) error {
	err := f()
	if err == nil {
		return nil
	}
	for _, giveBack := range [...]func(uintptr) bool{h.pages.purgeFor, h.reclaim, h.pages.purgeFor} {
		if err == nil || err == errClosed {
			break
		}
		if giveBack(pages) {
			err = f()
		}
	}
	return err
}

// reclaim looks for memory where purgeFor does not: in pages that the system
// refused to take back or to map, and in caches if a drain is worth its cost. It
// reports whether another try may help.
func (h *Heap) reclaim(uintptr) bool {
	limited := h.pages.maxBytes != 0
	if limited && !h.mayCount() {
		return false
	}
	worth := !limited || h.worthADrain()
	h.pages.scavenging.Lock()
	defer h.pages.scavenging.Unlock()
	if h.pages.closed.Load() {
		return false
	}
	if worth {
		h.drain()
	}
	h.pages.retryUnmapped()
	h.pages.retryPurge()
	return true
}

// mayCount reports whether a refusal is one of those that count.
func (h *Heap) mayCount() bool {
	every, now := int64(h.pages.maxBytes/countBytes)+1, time.Now().UnixNano()
	if h.refusals.Add(1)%every != 0 && within(drainPause, h.countedAt.Load(), now) {
		return false
	}
	h.countedAt.Store(now)
	return true
}

func (h *Heap) worthADrain() bool {
	c := h.count()
	gain := c.cached + c.empty
	switch {
	case gain == 0:
		return false
	case gain >= int(h.pages.maxBytes)/drainShare:
		return true
	}
	return !within(drainPause, h.drainedAt.Load(), time.Now().UnixNano())
}

// within reports whether then, in nanoseconds of Unix time, is less than d before
// now. A clock that was set back makes it long ago.
func within(d time.Duration, then, now int64) bool { return then <= now && now < then+int64(d) }

// counts is where a heap's memory is, in bytes.
type counts struct {
	live   int // in live blocks
	cached int // in free blocks of caches and stocks
	empty  int // in spans without a block, and in limbo
}

// count adds up a heap's blocks. It costs some microseconds.
func (h *Heap) count() (n counts) {
	h.eachClass(func(class *class, in holding) {
		n.live += in.live * int(class.size)
		n.cached += in.cached * int(class.size)
		n.empty += in.empty * int(class.pages) * pageBytes
	})
	n.empty += int(h.limbo.bytes.Load())
	h.pages.mu.Lock()
	defer h.pages.mu.Unlock()
	n.live += int(h.pages.large.bytes)
	return n
}
