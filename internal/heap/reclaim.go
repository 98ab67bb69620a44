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
	// many bytes of the limit.
	countBytes = 2 << 20

	// What a request may need beside its pages: slabs for a span, its states and a
	// magazine, and tables.
	slackPages = 4 * slabBytes / pageBytes
)

// withReclaim calls f, which allocates that many pages at most, and where f finds
// no memory gives some back and tries again. No lock of the heap is held.
func (h *Heap) withReclaim(pages uintptr, f func() error) error {
	err := f()
	for _, giveBack := range [...]func(*Heap, uintptr) bool{(*Heap).purgeFor, (*Heap).drainFor, (*Heap).purgeFor} {
		if err == nil || err == errClosed {
			break
		}
		if giveBack(h, pages) {
			err = f()
		}
	}
	return err
}

// purgeFor gives the memory of free pages back where that helps to get others,
// and reports whether it did.
func (h *Heap) purgeFor(pages uintptr) bool {
	h.mu.Lock()
	helps := h.runs.dirty > 0 && h.mayCharge(pages) == nil
	h.mu.Unlock()
	if !helps {
		return false
	}
	if pages += slackPages; h.maxBytes == 0 {
		pages = ^uintptr(0) // it is the system that has no more
	}
	return h.reclaim(func() { h.purge(pages) })
}

// drainFor drains the caches if that may help.
func (h *Heap) drainFor(pages uintptr) bool {
	if h.maxBytes != 0 && !h.worthADrain(pages) {
		return false
	}
	return h.reclaim(func() {
		h.drain()
		h.retryLost()
		h.unsettle()
	})
}

func (h *Heap) worthADrain(pages uintptr) bool {
	every := int64(h.maxBytes/countBytes) + 1
	if h.refusals.Add(1)%every != 0 {
		return false
	}
	c := h.count()
	gain := c.cached + c.empty
	switch {
	case gain == 0:
		return false
	case gain >= int(h.maxBytes)/drainShare:
		return true
	}
	return time.Now().UnixNano() > h.drainedAt.Load()+int64(drainPause)
}

func (h *Heap) reclaim(giveBack func()) bool {
	h.tending.Lock()
	defer h.tending.Unlock()
	if h.closed.Load() {
		return false
	}
	giveBack()
	return true
}

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
	h.mu.Lock()
	defer h.mu.Unlock()
	n.live += int(h.large.bytes)
	n.empty += int(h.limbo.bytes)
	return n
}
