// Reading: an item that its reader has found, and holds by a pin.

package cache

import (
	"sync/atomic"
	"time"

	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/prefetch"
)

// A reading is a found item, and the reader's pin on its segment. The zero reading is no item. It
// has four words: the compiler keeps a larger struct in memory, and each copy of that waits for
// stores.
type reading struct {
	at  *atomic.Uint64 // the slot
	w   slot           // that it had
	it  *item
	pin *atomic.Uint32
}

// release ends the reading; the item must not be read any more.
func (r reading) release() {
	if r.pin != nil {
		r.pin.Add(^uint32(0))
	}
}

// entryOf returns the entry of a reading. Its value is the item's memory. now is a result of
// accessTime.
func (s *shard) entryOf(r reading, now uint32) (e Entry) {
	e.Value, e.Flags, e.Version = r.it.value(), r.it.flags(), s.version(r.w, r.it)
	e.TTL = s.c.clock.left(r.it.expires.Load())
	if at := r.it.access(); at != nil {
		a := at.Load()
		e.Read, e.Idle = a&wasRead != 0, time.Duration(now-min(a&^wasRead, now))*time.Second
	}
	return e
}

// note makes now the time of the entry's last read, which entryOf shows from then on.
func (r reading) note(now uint32) {
	if at := r.it.access(); at != nil && at.Load() != now|wasRead {
		at.Store(now | wasRead)
	}
}

// isLive reports whether the item is an entry that has not expired.
func (r reading) isLive(c *clock) bool {
	return r.it != nil && !r.it.shape.isAbsent() && !r.it.hasExpired(c)
}

// find returns a reading of key, which may have expired or be absent. It takes no lock, unless
// writers keep moving slots meanwhile.
func (s *shard) find(h uint64, key []byte) reading {
	const tries = 100
	for range tries {
		moves := s.index.moves.Load()
		s.c.seam.At(readMoves)
		r := s.scan(h, key, false)
		if r.it != nil || moves&1 == 0 && s.index.moves.Load() == moves {
			return r
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scan(h, key, false)
}

// addrOf returns where the item of the first slot with a tag is, for a prefetch. The caller is
// among the readers.
func (s *shard) addrOf(tag uint32) uintptr {
	one, two := s.index.bucketsOf(tag)
	if one == nil {
		return 0
	}
	for _, b := range [...]*bucket{one, two} {
		for j := range b.slots {
			if w := slot(b.slots[j].Load()); w.tag() == tag && w != 0 {
				return s.segs.addrOf(w.place())
			}
		}
	}
	return 0
}

// scan looks at both homes of key once. A writer has the lock, and needs no pin as long as it
// reclaims nothing.
func (s *shard) scan(h uint64, key []byte, isWriter bool) reading {
	me := s.c.readers.Enter() // so that no bucket is freed
	r := s.look(tagOf(h), key, isWriter)
	s.c.readers.Leave(me)
	return r
}

// look is scan, among the readers.
func (s *shard) look(tag uint32, key []byte, isWriter bool) (r reading) {
	one, two := s.index.bucketsOf(tag)
	if one == nil {
		return reading{}
	}
	two.prefetch() // while one is looked at
	for _, b := range [...]*bucket{one, two} {
		for j := range b.slots {
			w := slot(b.slots[j].Load())
			if w == 0 || w.tag() != tag {
				continue
			}
			if isWriter {
				r = reading{&b.slots[j], w, s.segs.itemAt(w.place()), nil}
			} else if r = s.hold(&b.slots[j]); r.it == nil {
				continue
			}
			prefetch.Lines(addrOf(r.it.bytes(0, 1)), int(s.lines.Load()))
			if string(r.it.key()) == string(key) {
				return r
			}
			r.release()
		}
		s.c.seam.At(readFirst)
	}
	return reading{}
}

// hold pins the item of a slot and returns it, or the zero reading if the slot is empty.
func (s *shard) hold(at *atomic.Uint64) reading {
	for w := slot(at.Load()); w != 0; { // R1 of segment.go
		s.c.seam.At(readSlot)
		n, offset := s.segs.split(w.place())
		p := s.segs.pin(n, pin.Stripe(stripeBits))
		p.Add(1) // R2
		s.c.seam.At(readPinned)
		again := slot(at.Load()) // R3
		if again&^hitsMask == w&^hitsMask {
			s.c.seam.At(readHeld)
			return reading{at, again, s.segs.at(n).item(offset), p}
		}
		p.Add(^uint32(0))
		w = again
	}
	return reading{}
}

// hit counts a hit of the reading, up to maxHits, unless its slot was freed since it was found.
func (s *shard) hit(r reading) {
	if r.w.hits() == maxHits {
		return
	}
	me := s.c.readers.Enter()
	if s.index.has(r.at, r.w.tag()) {
		r.at.CompareAndSwap(uint64(r.w), uint64(r.w+oneHit))
	}
	s.c.readers.Leave(me)
}
