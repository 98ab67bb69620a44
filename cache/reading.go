// Reading: an item that its reader has found, and holds by a pin.

package cache

import (
	"sync/atomic"
	"time"

	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/prefetch"
)

// A reading is what a search has found. The zero reading is nothing.
type reading struct {
	s   *shard
	at  *atomic.Uint64 // the slot
	w   slot           // that it had
	it  *item
	pin *atomic.Uint32
}

// hold pins what a writer has found.
func (r *reading) hold() {
	if r.at != nil {
		n, _ := r.s.segs.split(r.w.place())
		r.pin = r.s.segs.pin(n, pin.Stripe(stripeBits))
		r.pin.Add(1)
	}
}

// release ends the reading; the item must not be read any more.
func (r *reading) release() {
	if r.pin != nil {
		r.pin.Add(^uint32(0))
	}
}

// entryOf returns the reading's entry, whose value is the item's memory. now is that of accessTime.
func (r *reading) entryOf(now uint32) Entry {
	if r.it == nil {
		return Entry{}
	}
	e := Entry{Value: r.it.value(), Flags: r.it.flags(), Version: r.s.version(r.w, r.it)}
	e.TTL = r.s.c.clock.left(r.it.expires.Load())
	if at := r.it.access(); at != nil {
		a := at.Load()
		e.Read, e.Idle = a&wasRead != 0, time.Duration(now-min(a&^wasRead, now))*time.Second
	}
	return e
}

// note makes now the time of the entry's last read, which entryOf shows from then on.
func (r *reading) note(now uint32) {
	if at := r.it.access(); at != nil && at.Load() != now|wasRead {
		at.Store(now | wasRead)
	}
}

// isLive reports whether the item is an entry that has not expired.
func (r *reading) isLive() bool {
	return r.it != nil && !r.it.shape.isAbsent() && !r.it.hasExpired(&r.s.c.clock)
}

// find returns a reading of key, which may have expired or be absent. It takes no lock, unless writers
// keep moving slots meanwhile.
func (s *shard) find(h uint64, key []byte) reading {
	const tries = 100
	for range tries {
		moves := s.index.moves.Load()
		s.c.seam.at(readMoves)
		r := s.scan(h, key, byKey)
		if r.it != nil || moves&1 == 0 && s.index.moves.Load() == moves {
			return r
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scan(h, key, byKey)
}

// A search is how scan looks.
type search int

const (
	byKey    search = iota
	byTag           // the first item with the key's tag is enough
	byWriter        // it has the lock, and needs no pin as long as it reclaims nothing
)

// scan looks at both homes of key once.
func (s *shard) scan(h uint64, key []byte, how search) (r reading) {
	tag := tagOf(h)
	me := s.c.readers.Enter() // so that no bucket is freed
	defer s.c.readers.Leave(me)
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
			if how == byWriter {
				r = reading{s, &b.slots[j], w, s.segs.itemAt(w.place()), nil}
			} else if r = s.hold(&b.slots[j]); r.it == nil {
				continue
			}
			prefetch.Lines(addrOf(r.it.bytes(0, 1)), int(s.lines.Load()))
			if how == byTag || string(r.it.key()) == string(key) {
				return r
			}
			r.release()
		}
		s.c.seam.at(readFirst)
	}
	return reading{}
}

// hold returns a reading of what a slot refers to. It is none if the slot is empty.
func (s *shard) hold(at *atomic.Uint64) reading {
	for w := slot(at.Load()); w != 0; { // R1 of segment.go
		s.c.seam.at(readSlot)
		n, offset := s.segs.split(w.place())
		p := s.segs.pin(n, pin.Stripe(stripeBits))
		p.Add(1) // R2
		s.c.seam.at(readPinned)
		again := slot(at.Load()) // R3
		if again&^hitsMask == w&^hitsMask {
			s.c.seam.at(readHeld)
			return reading{s, at, again, s.segs.at(n).item(offset), p}
		}
		p.Add(^uint32(0))
		w = again
	}
	return reading{}
}

// hit counts a hit of the reading, up to maxHits, unless its slot was freed since it was found.
func (r *reading) hit() {
	if r.w.hits() == maxHits {
		return
	}
	readers := &r.s.c.readers
	me := readers.Enter()
	defer readers.Leave(me)
	if r.s.index.has(r.at, r.w.tag()) {
		r.at.CompareAndSwap(uint64(r.w), uint64(r.w+oneHit))
	}
}
