// Shard: an index, segments and a part of the bound, for the keys whose hashes choose it.
//
// Each layer has its own verb for removal:
//
//	entry     delete    a call removes or replaces it
//	          drop      the cache removes it for a Reason, and OnEvict is told
//	item      discard   no slot refers to it, so it is garbage
//	segment   retire    it has no items; it is in limbo while it has readers, and then spare
//	memory    release   back to the parent

package cache

import (
	"bytes"
	"cmp"
	"math"
	"sync"
	"sync/atomic"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/container"
	"github.com/freehold-go/freehold/internal/cuckoo"
)

// A shard is the part of the cache under one lock. mu guards all fields except loads, lines, and
// the words of index and segs that readers use without a lock: see internal/cuckoo and segment.go.
//
// Invariants (check verifies them):
//   - used is the sum of the bytes from the parent: pages, chunks of the index, and blocks of
//     segments
//   - used <= limit, unless the limit was lowered while readers hold memory
type shard struct {
	c     *Cache
	index cuckoo.Index
	segs  segments
	lines atomic.Int32 // cache lines of a mean item: a search prefetches as many
	loads loads

	mu      sync.Mutex
	share   int                    // of the bound
	limit   int                    // the share, plus borrowed bytes, minus lent bytes: see lend.go
	pending int                    // bytes of the limit for the huge entry that is about to be stored
	trim    bool                   // unlock trims the parent
	used    int                    // bytes from the parent
	live    int                    // the sum of the segments' live; Stats reads no segment
	filled  int                    // the sum of the segments' used
	refused error                  // the parent's last error; nil at the next request for memory
	spares  []uint32               // segments without items
	spare   int                    // the bytes of spares
	limbo   []uint32               // segments that were emptied while readers had them pinned
	open    [4][2 * classes]uint32 // by size and queue, and by class; 0 is none: see openFor
	rests   [4]uint32              // sealed segments with room for large items; 0 is none: see restFor
	due     uint32                 // no item expires before that second; 0 is never
	held    place                  // the item there stays, even if it has expired; 0 is none
	woken   bool                   // a sweep in a second is to compact the shard
	passes  int                    // calls of each that have not ended
	begun   int                    // bytes of the newest segment for several items
	last    int                    // the size of the item that began the last segment: see mixes
	mixed   int                    // grows while such sizes differ, and falls while they are alike
	number  uint64                 // its index in the cache's shards
	age     uint64                 // of the newest segment
	floor   uint64                 // the highest version of items without a successor: see version.go
	entry   Entry                  // the argument of Update's function; here it costs no allocation
	room    []byte                 // for askExpiry
	policy  policy
	tier    *tier // the entries on disk, or nil
	counts
}

// counts has a shard's counters: see Stats.
type counts struct {
	sets    uint64
	dropped [reasons]uint64
	copied  uint64
}

func (s *shard) init(c *Cache, number uint64, limit int) {
	s.c, s.number, s.share, s.limit = c, number, limit, limit
	s.index.Init(c.segmentBytes, &c.readers, &c.seam)
	s.segs.init(c.segmentBytes, c.runBytes())
	s.lines.Store(1)
}

// A write is an entry on its way into its shard.
type write struct {
	h       uint64 // the hash of key
	key     []byte
	e       *Entry
	expires uint32 // the second or tick at which the entry expires, or 0 for never
	due     uint32 // the second from which GetOrLoad refreshes it, with Options.RefreshAfter
	shape   shape  // of the item, without a version
	asks    bool   // Options.Expiry gives the TTL
	kept    bool   // the item is not evicted
	keeps   bool   // the entry takes over the version of the key's entry, for Mark

	restored *marks   // of the Restore that stores the entry: a write since it began wins
	rank     uint16   // of a restored entry: see rankOf
	loading  *loading // of a loaded entry: a write since it began wins
}

func (c *Cache) newWrite(h uint64, key []byte, e *Entry, expires uint32) write {
	w := write{h: h, key: key, e: e, expires: expires, shape: c.shapeOf(e.Flags), kept: e.Kept || c.options.KeepAll}
	if c.options.RefreshAfter > 0 {
		w.due = c.clock.secondAfter(c.clock.shortened(c.options.RefreshAfter))
	}
	return w
}

// bytes returns the size of key and value together.
func (w *write) bytes() int { return len(w.key) + len(w.e.Value) }

// put stores an entry, and returns its version. old is the key's item, its image, or the zero
// pinned. If possible, the entry is written over old, and otherwise to new memory.
func (s *shard) put(w *write, old pinned) (version uint64, err error) {
	if s.index.Buckets() == 0 {
		return 0, s.noMemory()
	}
	if s.rewrite(w, old) {
		version = s.version(old.w, old.it)
	} else if version, err = s.putNew(w, old); err != nil {
		return 0, err
	}
	if !w.keeps {
		s.sets++
	}
	if s.tier != nil && w.shape&promoted == 0 {
		s.tier.forget(w.h)
	}
	return version, nil
}

// putNew is put in new memory. If the entry has no room beside old, and old is alone in its segment,
// putNew deletes old first.
func (s *shard) putNew(w *write, old pinned) (version uint64, err error) {
	before := s.floor
	if old.it != nil {
		before = s.version(old.w, old.it)
	}
	version = before + 1
	if w.keeps { // no position is the version: the item has room for it
		before, version = abovePositions, before
	}
	size := itemBytes(w.key, w.e, w.shape)
	main, hits := s.admit(w, old, size)
	main = main || w.kept
	need := want{size, seconds(w.e.TTL), main, w.kept, before}
	at, ok := s.allotBeside(&need, old)
	if !ok && s.isAlone(old) {
		w.e.Value = bytes.Clone(w.e.Value) // it may be old's memory
		s.delete(old)
		old = pinned{}
		at, ok = s.allot(&need)
	}
	if !ok {
		return 0, s.noMemory()
	}
	it := s.itemIn(at)
	it.write(w, at.shape, &s.c.clock)
	if at.shape == versioned {
		s.setVersion(it, version)
	}
	s.count(at)
	word := slotOf(tagOf(w.h), s.segs.place(at.n, at.offset), main, hits)
	if old.at != nil {
		s.replace(old, word)
	} else if !s.link(word) {
		s.discard(word.place())
		return 0, s.noMemory()
	}
	return s.version(word, it), nil
}

// allotBeside calls allot with the item of old pinned, so that allot does not reclaim it.
func (s *shard) allotBeside(need *want, old pinned) (at spot, ok bool) {
	if old.at != nil {
		old = s.hold(old.at)
		s.held = old.w.place()
		defer func() {
			s.held = 0
			s.unpin(old)
		}()
	}
	return s.allot(need)
}

// isAlone reports whether old is alone in an unpinned segment.
func (s *shard) isAlone(old pinned) bool {
	if old.at == nil {
		return false
	}
	n, _ := s.segs.split(old.w.place())
	return s.segs.at(n).alone && !s.segs.isPinned(n)
}

// noMemory returns the parent's error, or ErrOutOfMemory if the parent did not refuse.
func (s *shard) noMemory() error {
	return cmp.Or(container.Refused(s.refused), freehold.ErrOutOfMemory)
}

// replace makes the slot of old refer to another item.
func (s *shard) replace(old pinned, w slot) {
	old.at.Store(uint64(w))
	s.discard(old.w.place())
}

// delete removes the slot of old, if it has one.
func (s *shard) delete(old pinned) {
	if old.at != nil {
		s.raiseFloor(s.version(old.w, old.it))
		s.index.Remove(old.at)
		s.discard(old.w.place())
	}
}

// remove deletes the entry of a key with hash h: its item, if it has one, and its record on disk.
func (s *shard) remove(h uint64, old pinned) {
	s.delete(old)
	if s.tier != nil {
		s.tier.forget(h)
	}
}

// discard counts the item at a place as garbage.
//
// Precondition: no slot refers to the item.
func (s *shard) discard(at place) {
	n, offset := s.segs.split(at)
	g := s.segs.at(n)
	s.uncount(g, g.item(offset))
	s.retireEmpty(n)
	s.wakeIfWasteful()
}

// retireEmpty retires a segment if it is sealed and has no live items.
func (s *shard) retireEmpty(n uint32) {
	if g := s.segs.at(n); g.live == 0 && g.state == sealed {
		s.retire(n)
	}
}

// unused returns the bytes of garbage and of spare segments.
func (s *shard) unused() int { return s.filled - s.live + s.spare }

// isWasteful reports whether garbage and spare segments take more than half of the bytes of items.
func (s *shard) isWasteful() bool { return s.unused() > max(s.filled/2, 2*s.reserve()) }

// wakeIfWasteful wakes a wasteful shard.
func (s *shard) wakeIfWasteful() {
	if !s.woken && s.isWasteful() {
		s.wake()
	}
}

// wake schedules a sweep of the shard in a second, unless one is scheduled.
func (s *shard) wake() {
	if !s.woken {
		s.woken = true
		s.c.sweeper.wake(s.c.clock.now() + 1)
	}
}

// clear deletes everything.
func (s *shard) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index.Clear()
	s.tier.clear()
	s.live = 0
	s.wake()
	s.sealAll(true)
	s.segs.each(func(n uint32, g *segment) {
		if g.state == sealed {
			g.live = 0
			s.retire(n)
		}
	})
}

// grow adds bytes to the share and the limit.
func (s *shard) grow(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.share += bytes
	s.limit += bytes
}

// pagesShare is for resize: it empties a shard whose pages exceed 1/pagesShare of its share.
const pagesShare = 8

// resize lowers the share and the limit, and drops entries that no longer fit. The limit stays above
// the share by the bytes that readers hold.
func (s *shard) resize(share int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.limit
	lower := s.share - share
	s.share = share
	defer func() { // also if OnEvict panics
		s.limit = max(s.limit, min(s.used, was))
		s.c.bound.unlent.Add(int64(was - s.limit - lower))
	}()
	s.shrink(min(was, share), Shrunk)
	if s.segs.pages.Len()*pageBytes > share/pagesShare {
		s.dropPages()
	}
}

// endLoan is rebalance with the lock.
func (s *shard) endLoan() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rebalance()
}

// shrink changes the limit, and drops entries that no longer fit.
func (s *shard) shrink(limit int, why Reason) {
	s.limit = limit
	s.tier.shrink(limit)
	for round := 0; s.used-s.spare > limit; round++ {
		if !s.reclaim(round, why) && !(why == Shrunk && s.dropKept()) {
			break
		}
	}
	s.shrinkIndex(math.MaxInt, why)
	s.retireLimbo()
}

// dropKept drops the entries of a segment of kept ones. It reports whether there was one.
func (s *shard) dropKept() (done bool) {
	s.sealAll(true)
	s.segs.each(func(n uint32, g *segment) {
		if !done && g.isKept() && g.state == sealed && !s.segs.isPinned(n) {
			s.evacuate(n, rule{needs: maxHits + 1}, Shrunk)
			done = true
		}
	})
	return done
}

// dropPages drops all entries, and returns their segments and then all pages to the parent. A
// pinned segment stays with its entries, and then no page is returned.
func (s *shard) dropPages() {
	s.sealAll(true)
	s.segs.each(func(n uint32, g *segment) {
		if g.state == sealed && !s.segs.isPinned(n) {
			s.evacuate(n, rule{needs: maxHits + 1}, Shrunk) // no item stays
		}
	})
	for len(s.spares) > 0 {
		s.releaseSpare()
	}
	pages := &s.segs.pages
	if len(s.segs.unused) == pages.Len()<<pageBits-1 { // all, since 0 is no segment
		s.c.readers.Wait() // readers between R1 and R3 of segment.go
		s.used -= pages.Len() * pageBytes
		pages.Cut(s.c.base.Parent, 0)
		s.segs.unused = s.segs.unused[:0]
	}
}

// hasKept reports whether the shard may have kept entries.
func (s *shard) hasKept() (has bool) {
	s.segs.each(func(_ uint32, g *segment) { has = has || g.isKept() && g.live > 0 })
	return has
}

// isPinned reports whether a segment of the shard has readers.
func (s *shard) isPinned() (pinned bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.segs.each(func(n uint32, _ *segment) { pinned = pinned || s.segs.isPinned(n) })
	return pinned
}

// finish calls f, and undo if f panics, as OnEvict may.
func finish(f, undo func()) {
	done := false
	defer func() {
		if !done {
			undo()
		}
	}()
	f()
	done = true
}

// forAll calls f with each element, even if f panics for some.
func forAll[T any](all []T, f func(x *T)) {
	if len(all) > 0 {
		defer forAll(all[1:], f)
		f(&all[0])
	}
}

// close returns all memory. Loads that are under way, or begin later, are not stored.
func (s *shard) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads.close()
	parent := s.c.base.Parent
	s.segs.each(func(n uint32, _ *segment) { s.release(n) })
	s.index.Close(parent)
	s.tier.close()
	s.segs.pages.Cut(parent, 0)
	s.used, s.live = 0, 0
}
