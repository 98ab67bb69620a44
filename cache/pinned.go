// Pinned: an item that a reader has found, and keeps in its place by a pin on the segment.

package cache

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/freehold-go/freehold/internal/cuckoo"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/prefetch"
)

// A pinned is an item that was found, and the reader's pin on its segment. The zero pinned is no
// item. A pinned has four words: the compiler keeps a larger struct in memory, where copies wait for
// stores.
type pinned struct {
	at  *atomic.Uint64 // the slot
	w   slot           // its word when the item was found
	it  *item
	pin *atomic.Uint32
}

// unpin ends the pin of r; the item must not be read any more. Readers without a lock end each use
// of the cache's memory by unpin or by readers.Leave. Both keep the cache alive, so the collector
// does not close a cache with Options.Collect during a read.
func (s *shard) unpin(r pinned) {
	if r.pin != nil {
		r.pin.Add(^uint32(0))
	}
	// s refers to the cache, whose memory the pin is. No test can collect it just before the Add.
	runtime.KeepAlive(s)
}

// entryOf returns the entry of a pinned item. Its value is the item's memory. now is a result of
// accessTime.
func (s *shard) entryOf(r pinned, now uint32) (e Entry) {
	e.Value, e.Flags, e.Version = r.it.value(), r.it.flags(), s.version(r.w, r.it)
	e.Kept = !r.isImage() && s.isKept(r.w)
	e.TTL = s.c.clock.left(r.it.expires.Load())
	if at := r.it.access(); at != nil {
		a := at.Load()
		e.Read, e.Idle = a&wasRead != 0, time.Duration(now-min(a&^wasRead, now))*time.Second
	}
	return e
}

// isKept reports whether the item of a slot is not evicted.
func (s *shard) isKept(w slot) bool {
	n, _ := s.segs.split(w.place())
	return s.segs.at(n).isKept()
}

// accessTime returns the current second, or 0 if Options.Access is not set.
func (c *Cache) accessTime() uint32 {
	if !c.options.Access {
		return 0
	}
	return c.clock.now()
}

// markRead stores now as the time of the entry's last read. Later calls of entryOf show it.
func (r pinned) markRead(now uint32) {
	if at := r.it.access(); at != nil && at.Load() != now|wasRead {
		at.Store(now | wasRead)
	}
}

// isLive reports whether the item is an entry that has not expired.
func (r pinned) isLive(c *clock) bool {
	return r.it != nil && !r.it.shape.isAbsent() && !r.it.hasExpired(c)
}

// find returns the pinned item of key, which may have expired or be absent. It takes no lock,
// unless writers keep moving slots meanwhile.
func (s *shard) find(h uint64, key []byte) pinned {
	const tries = 100
	for range tries {
		moves := s.index.Moves()
		s.c.seam.At(readMoves)
		r := s.scan(h, key, false)
		if r.it != nil || moves&1 == 0 && s.index.Moves() == moves {
			return r
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scan(h, key, false)
}

// firstAddr returns the address of the item of the first slot with a tag, for a prefetch. The
// caller is among the readers.
func (s *shard) firstAddr(tag uint32) uintptr {
	one, two := s.index.Homes(tag)
	if one == nil {
		return 0
	}
	for _, b := range [...]*cuckoo.Bucket{one, two} {
		for j := range b.Slots {
			if w := slot(b.Slots[j].Load()); w.tag() == tag && w != 0 {
				return s.segs.addrAt(w.place())
			}
		}
	}
	return 0
}

// scan looks once at both homes of key, the two buckets where its slot may be. For a writer, which
// has the lock, it pins nothing: the item stays as long as the writer reclaims nothing.
func (s *shard) scan(h uint64, key []byte, isWriter bool) (r pinned) {
	found := s.index.Search(tagOf(h))
	if !found.Found() {
		return pinned{}
	}
	if isWriter {
		return s.look(found, key, true)
	}
	me := s.c.readers.Enter() // so that no bucket is freed
	r = s.look(found, key, false)
	s.c.readers.Leave(me)
	return r
}

// look returns the item of key among those that a search has found. The caller is among the
// readers, or is the writer.
func (s *shard) look(found cuckoo.Search, key []byte, isWriter bool) (r pinned) {
	for at := s.index.Next(&found); at != nil; at = s.index.Next(&found) {
		if !isWriter {
			r = s.hold(at)
		} else if w := slot(at.Load()); w != 0 {
			r = pinned{at, w, s.segs.itemAt(w.place()), nil}
		}
		if r.it == nil {
			continue
		}
		prefetch.Lines(addrOf(r.it.bytes(0, 1)), int(s.lines.Load()))
		if string(r.it.key()) == string(key) {
			return r
		}
		s.unpin(r)
	}
	return pinned{}
}

// hold pins the item of a slot and returns it, or the zero pinned if the slot is empty.
func (s *shard) hold(at *atomic.Uint64) pinned {
	for w := slot(at.Load()); w != 0; { // R1 of segment.go
		s.c.seam.At(readSlot)
		n, offset := s.segs.split(w.place())
		p := s.segs.pin(n, pin.Stripe(stripeBits))
		p.Add(1) // R2
		s.c.seam.At(readPinned)
		again := slot(at.Load()) // R3
		if again&^hitsMask == w&^hitsMask {
			s.c.seam.At(readHeld)
			return pinned{at, again, s.segs.at(n).item(offset), p}
		}
		p.Add(^uint32(0))
		w = again
	}
	return pinned{}
}

// hit counts a hit of the item, up to maxHits, unless its slot was freed since it was found.
func (s *shard) hit(r pinned) {
	w := onHit(r.w)
	if w == r.w {
		return
	}
	me := s.c.readers.Enter()
	if s.index.Has(r.at, r.w.tag()) {
		r.at.CompareAndSwap(uint64(r.w), uint64(w))
	}
	s.c.readers.Leave(me)
}
