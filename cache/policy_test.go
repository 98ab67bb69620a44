package cache

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"testing"
)

// A request reads a key, and sets a value of size bytes if the key has none.
type request struct{ key, size int }

// replay returns the hits of requests.
func replay(c *Cache, requests []request) (hits int) {
	for _, q := range requests {
		key := binary.LittleEndian.AppendUint64(nil, uint64(q.key))
		if c.View(key, func(Entry) {}) {
			hits++
		} else {
			must(0, c.Set(key, make([]byte, q.size)))
		}
	}
	return hits
}

// loop reads the keys from first on, n of them, the given number of times.
func loop(first, n, times, size int) (all []request) {
	for range times {
		for i := range n {
			all = append(all, request{first + i, size})
		}
	}
	return all
}

// zigzag reads the keys from 0 on, n of them, forward and back, the given number of times.
func zigzag(n, times, size int) (all []request) {
	for range times {
		there := loop(0, n, 1, size)
		all = append(all, there...)
		slices.Reverse(there)
		all = append(all, there...)
	}
	return all
}

// mixed takes requests of all traces in turn, until the first one ends.
func mixed(traces ...[]request) (all []request) {
	for i := 0; ; i++ {
		for _, t := range traces {
			if i == len(t) {
				return all
			}
			all = append(all, t[i])
		}
	}
}

// TestPolicy: hits of small traces, in a cache with room for about 8,000 values of 100 bytes or 200
// of 4,000.
func TestPolicy(t *testing.T) {
	const keys = 8000
	for _, tt := range []struct {
		name          string
		before, trace []request
		favor         Favor
		least, most   float64 // hits a request of trace
	}{
		{"a loop over half of what fits", nil, loop(0, keys/2, 10, 100), Hits, .89, .9},
		{"a loop over one and a half times of what fits keeps a part", nil, loop(0, keys*3/2, 20, 100), Hits, .46, .6},
		{"a loop over three times of what fits keeps a part", nil, loop(0, 3*keys, 20, 100), Hits, .2, .3},
		{"so does one over large values", nil, loop(0, 400, 20, 4000), Hits, .25, .5},
		{"a zigzag over twice of what fits keeps a part", nil, zigzag(2*keys, 40, 100), Hits, .4, .5},
		{"keys that are read often survive a scan", nil,
			mixed(loop(0, keys/4, 10, 100), loop(1e6, 10*keys, 1, 100)), Hits, .4, .45},
		{"a loop that fits after another one", loop(1e6, keys*3/4, 20, 100), loop(0, keys*3/4, 20, 100), Hits, .72, .95},
		{"a loop that does not fit after another one", loop(1e6, 2*keys, 20, 100), loop(0, keys/2, 20, 100), Hits, .7, .95},
		{"of two loops, the one of small values", nil,
			mixed(loop(0, keys/4, 40, 50), loop(1e6, keys/4, 40, 1000)), Hits, .5, .75},
		{"and also for byte hits, if both are read as often", nil,
			mixed(loop(0, keys/4, 40, 50), loop(1e6, keys/4, 40, 1000)), ByteHits, .4, .75},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCache(t, Options{MaxBytes: 1 << 20, Favor: tt.favor})
			replay(c, tt.before)
			got := float64(replay(c, tt.trace)) / float64(len(tt.trace))
			if got < tt.least || got > tt.most {
				t.Errorf("%.3f hits a request, want %.2f to %.2f", got, tt.least, tt.most)
			}
			c.check()
		})
	}
}

// TestGhostsOfLargeItems: a cache remembers not many more keys than it has items, although its
// buckets have room for more.
func TestGhostsOfLargeItems(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 8 << 20})
	replay(c, loop(0, 20_000, 1, 10_000))
	items, ghosts := 0, 0
	for i := range c.shards {
		s := &c.shards[i]
		items += s.index.Len()
		for i := range s.index.Buckets() {
			ghosts += (bits.Len64(s.index.Bucket(i).Note&allGhosts) + ghostBits - 1) / ghostBits
		}
	}
	if ghosts*100 < items*ghostPercent/2 || ghosts*100 > items*ghostPercent*2 {
		t.Errorf("%d ghosts of %d items", ghosts, items)
	}
}

// TestAged: a ghost is forgotten when the hand passes for the second time.
func TestAged(t *testing.T) {
	const g, old = ghostBits, ghostShift
	for _, tt := range []struct{ note, once, twice uint64 }{
		{0, 0, 0},
		{7, 1<<old | 7, 0},
		{8<<g | 9, 2<<old | 8<<g | 9, 0},
		{1<<old | 8<<g | 9, 1<<old | 9, 0}, // 9 came after the hand
		{5<<old | allGhosts, 0, 0},
		{allGhosts, 5<<old | allGhosts, 0},
	} {
		if once := aged(tt.note); once != tt.once || aged(once) != tt.twice {
			t.Errorf("%#x: %#x and then %#x, want %#x and %#x", tt.note, once, aged(once), tt.once, tt.twice)
		}
	}
}

// TestWeight: half the binary logarithm of the size in means, rounded.
func TestWeight(t *testing.T) {
	p := policy{mean: 1000}
	for size, want := range map[int]int{
		1000: 0, 1999: 0, 2000: 1, 7999: 1, 8000: 2, 1 << 30: 2,
		501: 0, 500: -1, 126: -1, 125: -2, 32: -2, 31: -3, 1: -3,
	} {
		if got := p.weight(size); got != want {
			t.Errorf("size %d: %d, want %d", size, got, want)
		}
	}
	if p = (policy{mean: 32}); p.weight(1) != -3 {
		t.Errorf("a 32nd of the mean: %d", p.weight(1))
	}
}

// TestAdmit: a new key goes to main while there is room, or if it has a ghost whose price the credit
// pays. Each new key adds to the credit.
func TestAdmit(t *testing.T) {
	const h = 1 << 60
	for _, tt := range []struct {
		name         string
		credit       int
		ghost        bool
		room, begun  int // of 1000 bytes
		size         int // the mean is 1000
		main         bool
		hits, remain int
	}{
		{"a new key", 10, false, 0, 0, 1000, false, 0, 11},
		{"a ghost", ghostPrice - 1, true, 0, 0, 1000, true, 0, 0},
		{"a ghost with too little credit", ghostPrice - 2, true, 0, 0, 1000, false, 0, ghostPrice - 1},
		{"a light item with a ghost", ghostPrice, true, 0, 0, 300, true, 1, 1},
		{"the most credit", mostCredit, false, 0, 0, 1000, false, 0, mostCredit},
		{"room", 10, false, 10*roomPercent + 1, 0, 300, true, 1, 11},
		{"too little room", 10, false, 10 * roomPercent, 0, 300, false, 0, 11},
		{"room that is about to be filled", 10, false, 10*roomPercent + 1, 1, 300, false, 0, 11},
	} {
		c := newCache(t, Options{})
		must(0, c.Set([]byte("k"), nil)) // the index has ghosts from the first item on
		s := &c.shards[0]
		if tt.ghost {
			s.addGhost(h, false)
		}
		s.policy = policy{credit: tt.credit, items: 4, mean: 1000}
		s.limit, s.used, s.spare, s.begun = 1000, 1000-tt.room, 0, tt.begun
		main, hits := s.admit(&write{h: h}, pinned{}, tt.size)
		if main != tt.main || hits != tt.hits || s.policy.credit != tt.remain {
			t.Errorf("%s: main %t with %d hits, and a credit of %d", tt.name, main, hits, s.policy.credit)
		}
	}
}

// TestVictim: the rule for each kind of segment, in a first round and in one after patience.
func TestVictim(t *testing.T) {
	const late = patience + 2
	for _, tt := range []struct {
		name        string
		main        bool
		live        uint32 // of the 1000 bytes that are used
		first, last rule
	}{
		{"a segment of small", false, 1000, rule{needs: promoteHits, promotes: true, weighs: true}, rule{needs: promoteHits + 2, promotes: true, weighs: true}},
		{"one of main", true, 1000, rule{needs: 1, pays: 1, weighs: true}, rule{needs: 3, pays: 1, weighs: true}},
		{"garbage", true, 500, rule{}, rule{needs: 2 * maxHits}},
	} {
		c := newCache(t, Options{})
		must(0, c.Set([]byte("k"), nil))
		s := &c.shards[0]
		s.sealAll(false)
		var want uint32
		s.segs.each(func(n uint32, g *segment) {
			if g.state == sealed {
				want, g.main, g.used, g.live = n, tt.main, 1000, tt.live
			}
		})
		for round, r := range map[int]rule{0: tt.first, patience: tt.first, late: tt.last} {
			if n, got := s.victim(round, true); n != want || got != r {
				t.Errorf("%s, round %d: %d by %+v, want %d by %+v", tt.name, round, n, got, want, r)
			}
		}
	}
}

// TestGarbageOfKeptItems: garbage beside kept items counts only if there is memory for their copies.
func TestGarbageOfKeptItems(t *testing.T) {
	c := newCache(t, Options{})
	must(0, c.Set([]byte("k"), nil))
	s := &c.shards[0]
	s.sealAll(false)
	s.segs.each(func(_ uint32, g *segment) {
		if g.state == sealed {
			g.class, g.used, g.live = classes, 1000, 400
		}
	})
	for room, want := range map[int]int{400: 600, 399: 0} {
		s.limit, s.used, s.spare = 10_000, 10_000-room, 0
		if got := s.victims().garbage; got != want {
			t.Errorf("with %d bytes there are %d of garbage, want %d", room, got, want)
		}
	}
}

// TestPrice: main ghosts that return more often than others raise the price of ghosts.
func TestPrice(t *testing.T) {
	for _, tt := range []struct {
		small, main recent
		want        int
	}{
		{recent{}, recent{}, ghostPrice},
		{recent{1000, 100}, recent{100, 10}, ghostPrice},
		{recent{1000, 100}, recent{100, 0}, ghostPrice},
		{recent{1000, 190}, recent{100, 39}, 2 * ghostPrice},
		{recent{1000, 0}, recent{100, 1}, 2 * ghostPrice},
		{recent{1000, 0}, recent{100, 100}, mostPrice},
	} {
		p := policy{small: tt.small, main: tt.main}
		if got := p.price(); got != tt.want {
			t.Errorf("%v, %v: %d, want %d", tt.small, tt.main, got, tt.want)
		}
	}
}

// TestRecent: evictions and returns of ghosts count for the queue of the ghost. Half of them are
// forgotten when there are more evictions than items.
func TestRecent(t *testing.T) {
	c := newCache(t, Options{})
	must(0, c.Set([]byte("k"), nil))
	s := &c.shards[0]
	for h, main := range []bool{false, true} {
		s.policy = policy{}
		h := uint64(h+1) << 60
		s.addGhost(h, main)
		if got := s.recall(h); got == main {
			t.Errorf("main %t: a ghost is recalled: %t", main, got)
		}
		q, other := s.policy.small, s.policy.main
		if main {
			q, other = other, q
		}
		if (q != recent{0, 1}) || (other != recent{}) {
			t.Errorf("main %t: %v, others %v", main, q, other)
		}
		w := slotOf(0, 0, main, 0)
		s.evicted(w, h)
		s.policy.small.returned, s.policy.main.returned = 4, 6
		s.evicted(w, h)
		q, other = s.policy.small, s.policy.main
		if main {
			q, other = other, q
		}
		if q.evicted != 1 || other.evicted != 0 || s.policy.small.returned != 2 || s.policy.main.returned != 3 {
			t.Errorf("main %t: %v, others %v after two evictions", main, q, other)
		}
	}
}

// TestMean: the mean size is the first items' mean at first, and follows a change of sizes.
func TestMean(t *testing.T) {
	var p policy
	for i, step := range []struct {
		items, size int
		least, most uint64
	}{
		{1, 100, 100, 100},
		{3, 1000, 775, 775},
		{10 * meanItems, 1000, 990, 1000},
		{10 * meanItems, 100, 100, 110},
	} {
		for range step.items {
			p.measure(step.size)
		}
		if p.mean < step.least || p.mean > step.most {
			t.Errorf("step %d: %d, want %d to %d", i, p.mean, step.least, step.most)
		}
	}
}

// TestStays: whether an item stays by each rule, and its queue and hits then.
func TestStays(t *testing.T) {
	small := rule{needs: promoteHits, promotes: true, weighs: true}
	main := rule{needs: 1, pays: 1, weighs: true}
	for _, tt := range []struct {
		name     string
		r        rule
		isMain   bool
		hits     int
		size     int // the mean is 1000
		favor    Favor
		ok, goes bool // stays, to main
		left     int
	}{
		{"one hit is too few for main", small, false, 1, 1000, Hits, false, true, 0},
		{"two are enough, and are spent", small, false, 2, 1000, Hits, true, true, 0},
		{"a light item needs fewer, and begins with hits", small, false, 1, 300, Hits, true, true, 1},
		{"a heavy item needs more", small, false, 3, 8000, Hits, false, true, 0},
		{"for byte hits too", small, false, 3, 8000, ByteHits, false, true, 0},
		{"a hit is paid for", main, true, 2, 1000, Hits, true, true, 1},
		{"no hit is left", main, true, 0, 1000, Hits, false, true, 0},
		{"a heavy item pays more", main, true, 3, 8000, Hits, true, true, 0},
		{"and needs more", main, true, 2, 8000, Hits, false, true, 0},
		{"but not for byte hits", main, true, 2, 8000, ByteHits, true, true, 1},
		{"a light one pays as others", main, true, 1, 30, Hits, true, true, 0},
		{"compaction takes nothing", rule{}, false, 1, 8000, Hits, true, false, 1},
	} {
		s := &shard{c: &Cache{options: Options{Favor: tt.favor}}, policy: policy{mean: 1000}}
		goes, left, ok := s.stays(tt.r, slotOf(1, 1, tt.isMain, tt.hits), tt.size)
		if ok != tt.ok || ok && (goes != tt.goes || left != tt.left) {
			t.Errorf("%s: %t, %d, %t", tt.name, goes, left, ok)
		}
	}
}

// TestWarmth: an item that is about to go to main is as warm as one that has just come there, and
// others of main are warmer.
func TestWarmth(t *testing.T) {
	if a, b := warmth(slotOf(1, 1, false, promoteHits)), warmth(slotOf(1, 1, true, 0)); a != b {
		t.Errorf("%d in small, %d in main", a, b)
	}
	if a, b := warmth(slotOf(1, 1, false, maxHits)), warmth(slotOf(1, 1, true, maxHits)); a >= b || b != warmths-1 {
		t.Errorf("%d in small, %d in main, of %d", a, b, warmths)
	}
}

// TestGhostOfAFullBucket: a new ghost takes the place of an old one. Each hash has a ghost.
func TestGhostOfAFullBucket(t *testing.T) {
	c := newCache(t, Options{})
	must(0, c.Set([]byte("k"), nil))
	s := &c.shards[0]
	for range maxGhosts {
		s.addGhost(0, false)
	}
	note := &s.index.First(0).Note
	if *note = aged(*note); *note>>ghostShift != maxGhosts {
		t.Fatalf("%#x: not all ghosts are old", *note)
	}
	s.addGhost(0, false)
	if *note>>ghostShift != maxGhosts-1 {
		t.Errorf("%#x: the new ghost is old", *note)
	}
	if *note = aged(*note); !s.recall(0) {
		t.Errorf("%#x: the new ghost is gone with the old ones", *note)
	}
}

// TestGhostsOfSmallItems: while the buckets have too little room for all ghosts, none is forgotten
// for its age.
func TestGhostsOfSmallItems(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 1 << 20})
	replay(c, loop(0, 40_000, 1, 16))
	s := &c.shards[0]
	if most := s.index.Len() * ghostPercent / 100; int(s.index.Buckets())*maxGhosts > most {
		t.Fatalf("%d buckets have room for %d ghosts", s.index.Buckets(), most)
	}
	before := s.policy.hand
	for h := range uint64(1000) {
		s.evicted(slotOf(0, 0, false, 0), h<<50)
	}
	if s.policy.hand != before {
		t.Error("ghosts age")
	}
}

// TestRestoredItemsAreMeasured: they count in the mean size, by which items weigh.
func TestRestoredItemsAreMeasured(t *testing.T) {
	s := &shard{}
	if main, hits := s.readmit(rankOf(slotOf(1, 1, true, 2), false), 1000); !main || hits != 2 || s.policy.mean != 1000 {
		t.Errorf("%t, %d hits, mean %d", main, hits, s.policy.mean)
	}
}
