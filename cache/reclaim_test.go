package cache

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/cuckoo"
	"github.com/freehold-go/freehold/internal/mode"
	"github.com/freehold-go/freehold/internal/panics"
)

// TestExpiredGoFirst: while expired entries are left, no other entry is dropped for room.
func TestExpiredGoFirst(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 1 << 20})
	clock := c.fake()
	const n = 350
	for i := range n {
		must(0, c.Set(fmt.Append(nil, "stays ", i), make([]byte, 1000)))
		must(0, c.SetTTL(fmt.Append(nil, "expires ", i), make([]byte, 1000), time.Minute))
	}
	clock.now += 2 * time.Minute
	for i := range n {
		must(0, c.Set(fmt.Append(nil, "new ", i), make([]byte, 1000)))
	}
	if st := c.Stats(); st.Evicted > 0 || st.Expired == 0 {
		t.Errorf("%+v", st)
	}
	c.check()
}

// TestGhosts: a key that is set again after its eviction from the small queue goes to the main
// queue. An entry with two hits goes there too, and loses its hits. An entry that is alone in its
// segment is not copied for that.
func TestGhosts(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 1 << 20})
	evict := func(n uint64) {
		for i, before := 0, c.Stats().Evicted; c.Stats().Evicted < before+n; i++ {
			must(0, c.Set(fmt.Append(nil, before, i), make([]byte, 2500)))
		}
	}
	evict(1) // the first keys go to main
	read, large := []byte("read"), []byte("large")
	must(0, c.Set(read, make([]byte, 2500)))
	must(0, c.Set(large, make([]byte, c.segmentBytes)))
	for range maxHits {
		c.Get(nil, read)
		c.Get(nil, large)
	}
	last := ""
	c.options.OnEvict = func(key []byte, _ Entry, _ Reason) { last = string(key) }
	copied := c.Stats().Copied
	evict(400)
	evicted := []byte(last)
	must(0, c.Set(evicted, make([]byte, 2500)))
	for _, key := range [][]byte{evicted, read, large} {
		if w := c.found(key).w; !w.main() || w.hits() != 0 {
			t.Errorf("%s is in main: %t, with %d hits", key, w.main(), w.hits())
		}
	}
	if st, size := c.Stats(), c.found(read).it.size(); st.Copied-copied != uint64(size) {
		t.Errorf("%d bytes copied, want those of one item, %d", st.Copied-copied, size)
	}
}

// TestHitsAreSpent: an entry of the main queue that is no longer read is evicted before entries
// that are.
func TestHitsAreSpent(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 1 << 20})
	k := []byte("read before")
	must(0, c.Set(k, make([]byte, 500)))
	for range 2 * maxHits {
		c.Get(nil, k)
	}
	main := func(key []byte) bool { r := c.found(key); return r.at != nil && r.w.main() }
	isMain := func() bool { return main(k) }
	for i := 0; i < 40_000 && !isMain(); i++ {
		must(0, c.Set(fmt.Append(nil, "other ", i), make([]byte, 500)))
	}
	for range maxHits {
		c.Get(nil, k)
	}
	for i := 0; i < 100_000 && c.found(k).at != nil; i++ {
		key := fmt.Append(nil, i)
		must(0, c.Set(key, make([]byte, 500)))
		for range promoteHits {
			c.Get(nil, key)
		}
		for j := max(i-1000, 0); j < i; j += 100 {
			if key := fmt.Append(nil, j); main(key) && c.found(key).w.hits() == 0 {
				c.Get(nil, key)
			}
		}
	}
	if c.found(k).at != nil {
		t.Error("it stays for ever")
	}
}

// TestGhostsOfASplit: after a split both buckets have the ghosts of the bucket before.
func TestGhostsOfASplit(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 1 << 20})
	must(0, c.Set([]byte("k"), nil))
	s := &c.shards[0]
	ix := &s.index
	for range 100 {
		if ix.Unused() == 0 && !s.addChunk() {
			t.Fatal("no memory")
		}
		n := ix.Buckets()
		goes, stays := uint64(n)|1<<60, uint64(n&^(1<<(bits.Len32(n)-1)))|1<<61
		s.addGhost(goes, false)
		s.addGhost(stays, false)
		ix.Split()
		if !s.recall(goes) || !s.recall(stays) {
			t.Fatalf("forgotten with bucket %d: %t, %t", n, !s.recall(goes), !s.recall(stays))
		}
	}
}

// TestHitsOfAReplacedEntry: a new entry of a key has the hits of the entry before, wherever it is
// stored.
func TestHitsOfAReplacedEntry(t *testing.T) {
	c := newCache(t, Options{})
	k := []byte("k")
	must(0, c.Set(k, make([]byte, 100)))
	c.Get(nil, k)
	c.Get(nil, k)
	must(0, c.Set(k, make([]byte, 200)))
	if hits := c.found(k).w.hits(); hits != 2 {
		t.Errorf("%d hits, want 2", hits)
	}
}

// TestCopiesFindRoom: entries that are overwritten in other sizes all stay if they fit, but for few,
// and no Set fails.
func TestCopiesFindRoom(t *testing.T) {
	const bound, sets = 800_000, 50_000
	for _, tt := range []struct{ least, most int }{{100, 1100}, {592, 608}} {
		c := newCache(t, Options{MaxBytes: bound})
		r := rand.New(rand.NewPCG(1, 1))
		for range sets {
			key := fmt.Append(nil, "key", r.IntN(bound*2/3/636))
			must(0, c.Set(key, make([]byte, tt.least+r.IntN(tt.most-tt.least))))
		}
		if n := c.Stats().Evicted; n > sets/25 {
			t.Errorf("values of %d to %d bytes: %d of %d sets evict", tt.least, tt.most, n, sets)
		}
		c.check()
	}
}

// TestSmallCaches: small caches hold most of what is configured.
func TestSmallCaches(t *testing.T) {
	if _, on := mode.Quarantine(); on {
		t.Skip("red zones take a part of the bound")
	}
	for bound, least := range map[int]float64{300_000: .82, 800_000: .92, 2_000_000: .94} {
		c := New(freehold.Pages(), &Options{MaxBytes: bound})
		if got := payloadOver(t, c, func(int) int { return 1000 }); got < least {
			t.Errorf("%d bytes: %.3f are keys and values, want %.2f", bound, got, least)
		}
		c.Close()
	}
}

// TestRefusedSegments: if the parent refuses a segment, its number stays unused.
func TestRefusedSegments(t *testing.T) {
	// The parent has memory for a chunk and a page.
	c := New(alloctest.FailAfter(alloctest.New(t), 2), &Options{MaxBytes: MinBytes})
	defer c.Close()
	for range 2 * pageSegments {
		if err := c.Set([]byte("k"), nil); !errors.Is(err, freehold.ErrOutOfMemory) {
			t.Fatal(err)
		}
	}
	if n := len(c.shards[0].segs.unused); n != pageSegments-1 {
		t.Errorf("%d numbers, want %d", n, pageSegments-1)
	}
}

// TestSlidingLargeEntryStays: reads renew the TTL of a large entry. It is not evicted as expired
// when its first TTL has passed.
func TestSlidingLargeEntryStays(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 1 << 20, TTL: 10 * time.Second, Sliding: true})
	clock := c.fake()
	large := []byte("large")
	must(0, c.Set(large, make([]byte, 200_000)))
	for i := range 5000 {
		if i%50 == 0 {
			clock.now += time.Second
			if _, ok := c.Get(nil, large); !ok {
				t.Fatalf("it was dropped after %d others, at %v: %+v", i, clock.now, c.Stats())
			}
		}
		must(c.Put(fmt.Append(nil, i), Entry{Value: make([]byte, 1000)}))
	}
}

// TestTouchOfASlidingEntry: an entry is due at its end, even if reads and Touch change it.
func TestTouchOfASlidingEntry(t *testing.T) {
	c := newCache(t, Options{TTL: 100 * time.Second, Sliding: true})
	k := []byte("k")
	must(0, c.SetTTL(k, make([]byte, 5000), time.Second))
	c.Get(nil, k)
	c.Touch(k, time.Second)
	c.check()
}

// A trimmed parent counts the bytes of large blocks that are freed between two calls of Trim.
type trimmed struct {
	freehold.Allocator
	c           *Cache
	bytes, most int
	trims       int
}

func (p *trimmed) Free(b []byte) {
	if len(b) > p.c.segmentBytes {
		p.bytes += len(b)
		p.most = max(p.most, p.bytes)
	}
	p.Allocator.Free(b)
}

func (p *trimmed) Trim() {
	p.c.Stats() // no lock is held
	p.bytes = 0
	p.trims++
}

// TestLargeItemsTrim: the cache trims its parent before large items have freed more than a part of
// the bound.
func TestLargeItemsTrim(t *testing.T) {
	const most, large = leastReturned, 1 << 20
	p := &trimmed{Allocator: newHeap(t)}
	p.c = New(p, &Options{MaxBytes: 16 << 20})
	defer p.c.Close()
	value := make([]byte, large)
	for i := range 400 {
		must(0, p.c.Set(fmt.Append(nil, i), value[:large/2+i*7919%(large/2)]))
	}
	// A Set may evict until a large item and the reserve have room.
	if p.trims == 0 || p.most > most+3*large || p.most < most {
		t.Errorf("%d trims, and up to %d bytes between two, want %d", p.trims, p.most, most)
	}
	for i := range 10_000 {
		must(0, p.c.Set(fmt.Append(nil, "small ", i), value[:1000]))
	}
	trims := p.trims
	for i := range 50_000 {
		must(0, p.c.Set(fmt.Append(nil, "small ", i), value[:1000]))
	}
	if p.trims != trims {
		t.Error("small items trim the parent")
	}
}

// TestWorst: worst returns the slot with the fewest hits whose item is not kept.
func TestWorst(t *testing.T) {
	for least := range cuckoo.Slots {
		var b cuckoo.Bucket
		for j := range b.Slots {
			b.Slots[j].Store(uint64(slotOf(1, place(j), false, 2)))
		}
		b.Slots[least].Store(uint64(slotOf(1, place(least), true, 1)))
		kept := func(w slot) bool { return w.hits() == 2 }
		if none := func(slot) bool { return false }; worst(&b, none) != &b.Slots[least] || worst(&b, kept) != &b.Slots[least] {
			t.Errorf("slot %d, which has fewest hits, stays", least)
		}
		fewest := func(w slot) bool { return w.hits() == 1 }
		if at := worst(&b, fewest); at == nil || at == &b.Slots[least] || worst(&b, func(slot) bool { return true }) != nil {
			t.Errorf("slot %d, whose item is kept, goes", least)
		}
	}
}

// TestParentThatRefuses: if the parent has less than MaxBytes, the cache evicts entries to store
// others.
func TestParentThatRefuses(t *testing.T) {
	c := New(alloctest.FailAfter(alloctest.New(t), 40), &Options{MaxBytes: 4 << 20})
	defer c.Close()
	for i := range 5000 {
		if err := c.Set(fmt.Append(nil, i), make([]byte, 1000)); err != nil {
			t.Fatalf("Set %d: %v", i, err)
		}
	}
	c.check()
}

// TestOnEvictPanics: if OnEvict panics in a Set, each entry is still told once, and an expired one
// does not stay.
func TestOnEvictPanics(t *testing.T) {
	told, calm := map[string]int{}, false
	c := newCache(t, Options{OnEvict: func(key []byte, _ Entry, _ Reason) {
		if told[string(key)]++; len(told)%7 == 0 && !calm {
			panic("OnEvict")
		}
	}})
	clock := c.fake()
	const n = 20_000
	var failed [n]bool
	for i := range n {
		clock.now += time.Second / 256
		func() {
			defer func() { failed[i] = recover() != nil }()
			c.SetTTL(fmt.Append(nil, i), make([]byte, 200), time.Duration(i%2)*time.Second)
		}()
	}
	c.check()
	calm = true
	clock.now += time.Minute
	c.sweep()
	for i := 1; i < n; i += 2 {
		if got := told[fmt.Sprint(i)]; got > 1 || got == 0 && !failed[i] {
			t.Fatalf("OnEvict was told %d times of %d", got, i)
		}
	}
}

// TestSpareThatIsTooSmall: of sizes that differ, no item gets a spare segment that is smaller.
func TestSpareThatIsTooSmall(t *testing.T) {
	c := newCache(t, Options{})
	s := &c.shards[0]
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.take(freehold.GoodSize(c.base.Parent, 380))
	if s.recycle(n); !ok {
		t.Fatal("no memory")
	}
	s.mixed = mostMixed
	if n := s.takeFitting(412, s.scored(412, 416)); n != 0 {
		t.Errorf("a segment of %d bytes for an item of 412", s.segs.at(n).bytes)
	}
	size := int(s.segs.at(n).bytes) - unitBytes
	at, ok := s.allotNew(&want{size: size, before: abovePositions}, s.scored(416, 416))
	if g := s.segs.at(at.n); !ok || g.used > g.bytes {
		t.Errorf("an item of %d bytes and a version takes %d of %d bytes", size, g.used, g.bytes)
	}
}

// TestFittingSpares: an item that is to be alone takes a spare segment of up to 1/spareShare more.
// Other items take any that lose at most restLoss of the score, up to runBytes.
func TestFittingSpares(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 4 << 20})
	s := &c.shards[0]
	s.mu.Lock()
	defer s.mu.Unlock()
	run, large := c.runBytes(), 8*c.runBytes()
	alone := fitted{bytes: large, alone: true}
	scored := func(bytes, more int) fitted { return fitted{bytes: 1, score: s.scored(1000, bytes).score + more} }
	for _, tt := range []struct {
		spare, size int
		f           fitted
		want        bool
	}{
		{large, large, alone, true}, {large + large/spareShare, large, alone, true},
		{large + large/spareShare + 1, large, alone, false}, {large - 1, large, alone, false},
		{run, 1000, scored(run, restLoss), true}, {run, 1000, scored(run, restLoss+1), false},
		{run + 1, 1000, scored(run+1, 0), false}, // places have no bits for more
	} {
		n, ok := s.take(tt.spare)
		if s.recycle(n); !ok {
			t.Fatal("no memory")
		}
		got := s.takeFitting(tt.size, tt.f) == n
		if got != tt.want {
			t.Errorf("%d bytes are taken for %d, %+v: %t", tt.spare, tt.size, tt.f, got)
		}
		if got {
			s.recycle(n)
		}
		s.releaseSpare()
	}
}

// TestFitIsBounded: fit returns no more bytes than the caller has, unless the item needs them.
func TestFitIsBounded(t *testing.T) {
	c := New(rounded{alloctest.New(t), 4 << 10, 0}, &Options{MaxBytes: 4 << 20})
	defer c.Close()
	s := &c.shards[0]
	for _, s.mixed = range []int{0, mostMixed} {
		for most := c.segmentBytes; most <= c.runBytes(); most += 1 << 10 {
			for size := c.segmentBytes / fittedShare; size < most; size += 300 {
				if f := s.fit(size, most); f.bytes > max(most, freehold.GoodSize(c.base.Parent, size)) {
					t.Fatalf("an item of %d bytes begins %d of %d", size, f.bytes, most)
				}
			}
		}
	}
}

// TestLastInItsQueue: a segment whose only item stays goes to the end of its queue.
func TestLastInItsQueue(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 1 << 20})
	s := &c.shards[0]
	segmentOf := func(key string) *segment {
		n, _ := s.segs.split(c.found([]byte(key)).w.place())
		return s.segs.at(n)
	}
	for _, key := range []string{"one", "two"} {
		must(0, c.Set([]byte(key), make([]byte, c.segmentBytes)))
	}
	for range 2 {
		for key, other := range map[string]string{"one": "two", "two": "one"} {
			r := c.found([]byte(key))
			s.keep(r.at, r.it, true, 0)
			if g, o := segmentOf(key), segmentOf(other); !g.alone || g.turn <= o.turn {
				t.Errorf("alone %t, turn %d, and that of another is %d", g.alone, g.turn, o.turn)
			}
		}
	}
	c.check()
}

// TestPinsOfAllStripes: a pin of any stripe keeps a segment.
func TestPinsOfAllStripes(t *testing.T) {
	c := newCache(t, Options{})
	must(0, c.Set([]byte("k"), nil))
	s := &c.shards[0]
	n, _ := s.segs.split(c.found([]byte("k")).w.place())
	for stripe := range uint32(stripes) {
		pin := s.segs.pin(n, stripe)
		pin.Add(1)
		if !s.segs.isPinned(n) {
			t.Errorf("a pin of stripe %d is overlooked", stripe)
		}
		pin.Add(^uint32(0))
	}
	if s.segs.isPinned(n) {
		t.Error("it stays pinned")
	}
}

// TestPanicOfOnEvict: a call in which OnEvict panics does not keep the lock of the shard.
func TestPanicOfOnEvict(t *testing.T) {
	key := []byte("key")
	for name, call := range map[string]func(c *Cache){
		"Delete": func(c *Cache) { c.Delete(key) },
		"Touch":  func(c *Cache) { c.Touch(key, 0) },
		"Add":    func(c *Cache) { c.Add(key, Entry{}) },
		"Update": func(c *Cache) { c.Update(key, func(*Entry, bool) Change { return Keep }) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t, Options{OnEvict: func([]byte, Entry, Reason) { panic("no") }})
			clock := c.fake()
			must(0, c.SetTTL(key, nil, time.Second))
			clock.now += 3 * time.Second
			panics.Want(t, "no", func() { call(c) })
			if !c.shards[0].mu.TryLock() {
				t.Fatal("the shard stays locked")
			}
			c.shards[0].mu.Unlock()
		})
	}
}

// TestIndexOfAFirstFill: while a cache fills, a third of its slots are empty. Once it is full, there
// are no more slots than an index needs that grows when it is full.
func TestIndexOfAFirstFill(t *testing.T) {
	for _, bound := range []int{MinBytes, 4 << 20} {
		for _, size := range []int{0, 64, 1000} {
			c := newCache(t, Options{MaxBytes: bound})
			chunk := c.segmentBytes / cuckoo.BucketBytes * cuckoo.Slots
			for i, half := 0, false; c.Stats().Evicted == 0; i++ {
				must(0, c.Set(fmt.Appendf(nil, "%07d", i), make([]byte, size)))
				if st := c.Stats(); !half && st.Reserved > bound/2 {
					half = true
					if st.Len > chunk && st.Len*100 > st.Slots*(roomyPercent+1) {
						t.Errorf("%d bytes, values of %d: half full, %d of %d slots are used", bound, size, st.Len, st.Slots)
					}
				}
			}
			if st := c.Stats(); st.Slots > st.Len*100/cuckoo.FullPercent+chunk {
				t.Errorf("%d bytes, values of %d: full, %d of %d slots are used", bound, size, st.Len, st.Slots)
			}
		}
	}
}

// TestExpiredLastItem: a call that drops the last item of a sealed segment, since it has expired,
// retires the segment.
func TestExpiredLastItem(t *testing.T) {
	c := newCache(t, Options{})
	clock := c.fake()
	must(0, c.SetTTL([]byte("key"), nil, 5*time.Second))
	s := &c.shards[0]
	s.mu.Lock()
	s.sealAll(true)
	s.mu.Unlock()
	clock.now += 10 * time.Second
	c.Delete([]byte("key"))
	s.segs.each(func(n uint32, g *segment) {
		if g.state == sealed {
			t.Errorf("segment %d is sealed, with %d live bytes", n, g.live)
		}
	})
	c.check()
}
