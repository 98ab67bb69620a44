package cache

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/internal/pin"
)

// TestGetMany: f gets each key that has an entry once, in any number of batches, even if keys are
// written meanwhile.
func TestGetMany(t *testing.T) {
	const n = 3*batchKeys + 5
	c := newShared(t, Options{MaxBytes: 1 << 20})
	clock := c.fake()
	var keys [][]byte
	for i := range n {
		keys = append(keys, fmt.Append(nil, "key ", i))
		switch i % 3 {
		case 0:
			must(0, c.Set(keys[i], keys[i]))
		case 1:
			must(0, c.SetTTL(keys[i], keys[i], time.Second))
		}
	}
	clock.now += 2 * time.Second
	for _, keys := range [][][]byte{keys, keys[:batchKeys], keys[:1], nil} {
		seen := map[int]bool{}
		c.GetMany(keys, func(i int, e Entry) {
			if string(e.Value) != string(keys[i]) || seen[i] {
				t.Errorf("key %d has %q, seen before: %t", i, e.Value, seen[i])
			}
			seen[i] = true
			c.Delete(keys[i])
			must(0, c.Set(keys[i], keys[i]))
		})
		if len(seen) != (len(keys)+2)/3 {
			t.Errorf("%d of %d keys are found", len(seen), len(keys))
		}
	}
	if panics.Of(func() { c.GetMany(keys, func(int, Entry) { panic("no") }) }) == "" || c.shards[0].isPinned() {
		t.Error("a panic of the function is lost, or leaves pins")
	}
	if st := c.Stats(); st.Hits == 0 || st.Misses == 0 {
		t.Errorf("%+v", st)
	}
}

// TestSliding: a read entry stays for another TTL of the options, and no longer.
func TestSliding(t *testing.T) {
	c := newCache(t, Options{TTL: 10 * time.Second, Sliding: true})
	clock := c.fake()
	must(0, c.Set([]byte("read"), []byte("v")))
	must(0, c.Set([]byte("left"), []byte("v")))
	must(0, c.SetTTL([]byte("ever"), []byte("v"), 0))
	must(0, c.SetTTL([]byte("long"), []byte("v"), 100*time.Second))
	get(t, c, "long", "v")
	for range 5 {
		clock.now += 8 * time.Second
		get(t, c, "read", "v")
	}
	get(t, c, "left", "")
	get(t, c, "long", "")
	clock.now += 11 * time.Second
	get(t, c, "read", "")
	get(t, c, "ever", "v")
	c.Delete([]byte("read"))
	c.check()
}

// TestTouchDuringARead: the TTL of a Touch stays, whichever reading of the clock in a Get it
// precedes.
func TestTouchDuringARead(t *testing.T) {
	c := newCache(t, Options{TTL: 10 * time.Second, Sliding: true})
	clock := c.fake()
	k := []byte("k")
	clock.hook = func() { c.Touch(k, 0) }
	for clock.at = 1; ; clock.at++ {
		clock.looks = clock.at // not yet
		must(0, c.Set(k, k))
		clock.looks = 0
		c.Get(nil, k)
		if clock.looks < clock.at {
			break
		}
		c.Peek(k, func(e Entry) {
			if e.TTL != 0 {
				t.Errorf("after look %d it has %v left", clock.at, e.TTL)
			}
		})
	}
	if clock.at < 3 {
		t.Errorf("%d looks", clock.at-1)
	}
}

// TestExpiresDuringARead: a call during which an entry expires does not make it stay for ever.
func TestExpiresDuringARead(t *testing.T) {
	c := newCache(t, Options{})
	clock := c.fake()
	k := []byte("k")
	clock.hook = func() { clock.now += time.Second }
	var snapshot bytes.Buffer
	for name, call := range map[string]func(see func(e Entry)){
		"View":    func(see func(Entry)) { c.View(k, see) },
		"GetMany": func(see func(Entry)) { c.GetMany([][]byte{k}, func(_ int, e Entry) { see(e) }) },
		"Update": func(see func(Entry)) {
			must(c.Update(k, func(e *Entry, found bool) Change {
				if !found {
					return Keep
				}
				see(*e)
				return Store
			}))
		},
		"Snapshot": func(see func(Entry)) {
			snapshot.Reset()
			must(0, c.Snapshot(&snapshot))
			must(0, c.Restore(&snapshot))
			c.Peek(k, see)
		},
	} {
		for clock.at = 1; ; clock.at++ {
			c.Clear()
			clock.looks = clock.at // not yet
			must(0, c.SetTTL(k, k, time.Second))
			clock.looks = 0
			call(func(e Entry) {
				if e.TTL == 0 {
					t.Errorf("%s: at look %d it stays for ever", name, clock.at)
				}
			})
			if clock.looks < clock.at {
				break
			}
		}
	}
}

// TestAllOfFew: an iteration finds each of few entries in a large index, and asks for no empty slot.
func TestAllOfFew(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 4 << 20})
	c.fake()
	for left := 10_000; ; left /= 10 {
		for i := range 10_000 {
			must(0, c.Set(fmt.Append(nil, i), nil))
		}
		for i := left; i < 10_000; i++ {
			c.Delete(fmt.Append(nil, i))
		}
		found, asked := map[string]bool{}, 0
		for i := range c.shards {
			c.shards[i].each(func(slot) bool { asked++; return true }, func(r pinned) bool {
				found[string(r.it.key())] = true
				return true
			})
		}
		if len(found) != left || asked != left {
			t.Errorf("of %d entries %d are found, with %d slots", left, len(found), asked)
		}
		if left == 0 {
			break
		}
	}
}

// TestSweepBesideAll: a sweep does not shrink the index while an iteration runs, which would then
// miss entries. The next sweep does.
func TestSweepBesideAll(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 4 << 20})
	c.fake()
	buckets := func() (n uint32) {
		for i := range c.shards {
			n += c.shards[i].index.Buckets()
		}
		return n
	}
	for i := range 10_000 {
		must(0, c.Set(fmt.Append(nil, i), nil))
	}
	const left = 1000
	for i := left; i < 10_000; i++ {
		c.Delete(fmt.Append(nil, i))
	}
	before, found := buckets(), map[string]bool{}
	for k := range c.All() {
		found[string(k)] = true
		c.sweep()
	}
	if len(found) != left {
		t.Errorf("of %d entries %d are found", left, len(found))
	}
	for range c.All() {
		panics.Of(func() {
			for range c.All() {
				panic("in the body")
			}
		})
		break
	}
	for range 100 {
		c.sweep()
	}
	if n := buckets(); n >= before {
		t.Errorf("the index has %d buckets, and %d before the sweeps", n, before)
	}
}

// TestJitter: a TTL is shortened by at most the Jitter.
func TestJitter(t *testing.T) {
	c := newCache(t, Options{TTL: 1000 * time.Second, Jitter: 0.5})
	clock := c.fake()
	least, most := time.Hour, time.Duration(0)
	for i := range 100 {
		key := fmt.Append(nil, i)
		must(0, c.Set(key, nil))
		c.View(key, func(e Entry) { least, most = min(least, e.TTL), max(most, e.TTL) })
	}
	if least < 500*time.Second || least > 600*time.Second || most < 900*time.Second || most > 1001*time.Second {
		t.Errorf("TTLs from %v to %v", least, most)
	}
	clock.now = 1 << 62 // no overflow
	must(0, c.SetTTL([]byte("k"), []byte("v"), 1<<62))
	get(t, c, "k", "v")
}

// TestExpiryAtTheSecond: an entry is found until its TTL has passed, and not a second later.
func TestExpiryAtTheSecond(t *testing.T) {
	c := newCache(t, Options{})
	clock := c.fake()
	for _, at := range []time.Duration{0, 300 * time.Millisecond, 999_999_999} {
		clock.now = 10*time.Second + at
		must(0, c.SetTTL([]byte("k"), []byte("v"), 2*time.Second))
		clock.now += 2*time.Second - 1
		get(t, c, "k", "v")
		clock.now += time.Second
		get(t, c, "k", "")
	}
}

// TestHottest: entries that are read come first in Hottest, and last in Coldest. Both have all
// entries once, and stop when the loop does.
func TestHottest(t *testing.T) {
	for _, size := range []int{MinBytes, 32 << 20} {
		c := NewOf(newHeap(t), &OfOptions[int, int]{Options: Options{MaxBytes: size}})
		const keys, hot = 2000, 100
		for k := range keys {
			must(0, c.Set(k, -k))
		}
		for range maxHits {
			for k := range hot {
				c.Get(k)
			}
		}
		var hottest, coldest []int
		for k, e := range c.Hottest() {
			if hottest = append(hottest, k); e.Value != -k {
				t.Fatalf("%d has %d", k, e.Value)
			}
		}
		for k := range c.Coldest() {
			coldest = append(coldest, k)
		}
		for name, some := range map[string][]int{"Hottest": hottest[:hot], "Coldest": coldest[keys-hot:]} {
			if slices.Max(some) >= hot {
				t.Errorf("%d bytes: %s has %d among the %d that are read", size, name, slices.Max(some), hot)
			}
		}
		for name, all := range map[string][]int{"Hottest": hottest, "Coldest": coldest} {
			if slices.Sort(all); len(all) != keys || len(slices.Compact(all)) != keys {
				t.Errorf("%d bytes: %s has %d entries", size, name, len(all))
			}
		}
		n := 0
		for range c.Hottest() {
			if n++; n == hot+1 {
				break
			}
		}
		c.check()
		c.Close()
		if n != hot+1 {
			t.Errorf("the loop ended after %d", n)
		}
	}
}

// TestNothingIsAllocated: calls with keys made of short strings do not allocate.
func TestNothingIsAllocated(t *testing.T) {
	c := newShared(t, Options{MaxBytes: 1 << 20})
	key := strings.Repeat("k", 32)
	room, value, seen := make([]byte, 0, 100), []byte("value"), 0
	for name, f := range map[string]func(){
		"Set":    func() { must(0, c.Set([]byte(key), value)) },
		"Get":    func() { c.Get(room, []byte(key)) },
		"View":   func() { c.View([]byte(key), func(e Entry) { seen += len(e.Value) }) },
		"Touch":  func() { c.Touch([]byte(key), time.Hour) },
		"Delete": func() { c.Delete([]byte(key)) },
		"Update": func() {
			must(c.Update([]byte(key), func(e *Entry, _ bool) Change { e.Value = value; return Store }))
		},
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// An entry has the time of its last read. Peek does not count as a read.
func TestAccess(t *testing.T) {
	c := newCache(t, Options{Access: true})
	clock := c.fake()
	k := []byte("k")
	peek := func(read bool, idle time.Duration) {
		t.Helper()
		for range 2 {
			if !c.Peek(k, func(e Entry) {
				if string(e.Value) != "value" || e.Flags != 1<<40 || e.Read != read || e.Idle != idle*time.Second {
					t.Errorf("%q, flags %x, read %t, idle %v; want %t, %d s", e.Value, e.Flags, e.Read, e.Idle, read, idle)
				}
			}) {
				t.Error("it is not there")
			}
		}
	}
	clock.now = 100 * time.Second
	must(c.Put(k, Entry{Value: []byte("value"), Flags: 1 << 40}))
	clock.now += 5 * time.Second
	peek(false, 5)
	for name, read := range map[string]func(){
		"Get":     func() { c.Get(nil, k) },
		"View":    func() { c.View(k, func(Entry) {}) },
		"GetMany": func() { c.GetMany([][]byte{k, k}, func(int, Entry) {}) },
		"Touch":   func() { c.Touch(k, time.Hour) },
		"Update":  func() { must(c.Update(k, func(*Entry, bool) Change { return Touch })) },
	} {
		t.Run(name, func(t *testing.T) {
			read()
			peek(true, 0)
			clock.now += 3 * time.Second
			peek(true, 3)
			c.View(k, func(e Entry) {
				if !e.Read || e.Idle != 3*time.Second {
					t.Errorf("a read is told %t, %v of the reads before it", e.Read, e.Idle)
				}
			})
		})
	}
	must(c.Put(k, Entry{Value: []byte("value"), Flags: 1 << 40, Read: true, Idle: 7 * time.Second}))
	peek(true, 7)
	must(c.Put(k, Entry{Value: []byte("value"), Flags: 1 << 40, Idle: time.Hour}))
	peek(false, 120+firstSecond) // as old as second 0
	if st := c.Stats(); st.Hits != 9 || st.Misses != 0 {
		t.Errorf("%d hits and %d misses", st.Hits, st.Misses)
	}
	if c.Delete(k); c.Peek(k, nil) {
		t.Error("Peek finds what was deleted")
	}
}

// An Update that returns Touch sets the TTL as Touch does.
func TestUpdateThatTouches(t *testing.T) {
	c := newCache(t, Options{})
	clock := c.fake()
	k := []byte("k")
	touch := func(ttl time.Duration) uint64 {
		return must(c.Update(k, func(e *Entry, found bool) Change {
			e.Value, e.TTL = []byte("other"), ttl
			return Touch
		}))
	}
	if touch(time.Hour) != 0 || c.Len() != 0 {
		t.Error("Touch stores an entry")
	}
	version := must(c.Put(k, Entry{Value: []byte("v"), TTL: 10 * time.Second}))
	if got := touch(20 * time.Second); got != version {
		t.Errorf("version %d is %d after Touch", version, got)
	}
	clock.now += 15 * time.Second
	get(t, c, "k", "v")
	if touch(-1) != 0 {
		t.Error("an expired entry has a version")
	}
	get(t, c, "k", "")
}

// TestTouchIsARead: each call that touches an entry, in memory or on disk, sets Read to true and Idle
// to 0.
func TestTouchIsARead(t *testing.T) {
	k := []byte("k")
	for name, touch := range map[string]func(c *Cache){
		"Touch":  func(c *Cache) { c.Touch(k, time.Hour) },
		"Update": func(c *Cache) { must(c.Update(k, func(*Entry, bool) Change { return Touch })) },
		"Get":    func(c *Cache) { c.Get(nil, k) },
	} {
		for _, toDisk := range []func(c *Cache){func(*Cache) {}, (*Cache).toDisk} {
			c := onDisk(t, Options{Access: true})
			clock := c.fake()
			must(0, c.Set(k, nil))
			toDisk(c)
			clock.now += 10 * time.Second
			touch(c)
			clock.now += 3 * time.Second
			c.Peek(k, func(e Entry) {
				if !e.Read || e.Idle != 3*time.Second {
					t.Errorf("3 s after %s: read %t, idle %v", name, e.Read, e.Idle)
				}
			})
		}
	}
}

// Touched entries stay as read entries do.
func TestTouchedEntriesStay(t *testing.T) {
	c := newCache(t, Options{})
	for i := range 100_000 {
		if i%100 == 0 {
			c.Touch([]byte("kept"), time.Hour)
		}
		if i == 0 {
			must(0, c.Set([]byte("kept"), []byte("v")))
		}
		must(0, c.Set(fmt.Append(nil, "key ", i), make([]byte, 100)))
	}
	get(t, c, "kept", "v")
}

// A refiller is a parent that fills freed blocks with a word, as the next owner of the memory
// might.
type refiller struct {
	freehold.Allocator
	word  slot
	freed [][]slot
}

func (p *refiller) Free(b []byte) {
	words := unsafe.Slice((*slot)(unsafe.Pointer(&b[0])), len(b)/8)
	for i := range words {
		words[i] = p.word
	}
	p.freed = append(p.freed, words)
}

// TestHitOfAFreedSlot: a reader that counts its hit after the index has shrunk writes to no freed
// memory.
func TestHitOfAFreedSlot(t *testing.T) {
	p := &refiller{Allocator: newHeap(t)}
	c := New(p, &Options{MaxBytes: 4 << 20})
	defer c.Close()
	for i := range 40_000 {
		must(0, c.Set(fmt.Append(nil, i), nil))
	}
	s := &c.shards[0]
	keys := make([][]byte, 2) // one in the first bucket that has any, one in the last
	s.eachSlot(func(_ *atomic.Uint64, w slot) {
		keys[1], p.word = s.segs.itemAt(w.place()).key(), w
		if keys[0] == nil {
			keys[0] = bytes.Clone(keys[1])
		}
	})
	keys[1] = bytes.Clone(keys[1])
	found, chunks, waits := 0, s.index.Chunks(), 0
	defer pin.OnWait(func(h *pin.Holders) {
		if h != &c.readers { // the heap's: it ticks
			return
		}
		if waits++; s.index.Chunks() != chunks {
			t.Error("chunks were freed before their readers have left")
		}
	})()
	var held [2]pinned
	for i, key := range keys {
		held[i] = s.find(c.seed.Bytes(key), key)
	}
	c.Resize(4 << 20 / resizeShare)
	for _, r := range held {
		if r = c.countRead(s, r); r.it != nil {
			found++
		}
		c.shards[0].unpin(r)
	}
	for _, words := range p.freed {
		for _, w := range words {
			if w != p.word {
				t.Fatalf("%x, which was freed, has become %x", p.word, w)
			}
		}
	}
	if found != 2 || len(p.freed) == 0 || waits == 0 {
		t.Errorf("%d keys were found, %d blocks freed after %d waits", found, len(p.freed), waits)
	}
}

// TestPrefetch: Prefetch changes nothing, whatever keys there are, and is no read.
func TestPrefetch(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 1 << 20, Access: true})
	var keys [][]byte
	for i := range 2*batchKeys + 3 {
		keys = append(keys, fmt.Append(nil, "key ", i))
	}
	c.Prefetch(keys) // of an empty cache
	must(0, c.Set(keys[20], []byte("value")))
	before := c.Stats()
	c.Prefetch(nil)
	c.Prefetch(keys)
	if after := c.Stats(); after.Hits != before.Hits || after.Misses != before.Misses || after.Len != 1 {
		t.Errorf("%+v, and before %+v", after, before)
	}
	if !c.Peek(keys[20], func(e Entry) {
		if e.Read {
			t.Error("Prefetch counts as a read")
		}
	}) {
		t.Error("the entry is gone")
	}
}
