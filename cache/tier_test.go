package cache

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/disk"
)

// toDisk evicts all entries that are not kept from memory.
func (c *Cache) toDisk() {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.sealAll(false)
		s.segs.each(func(n uint32, g *segment) {
			if g.state == sealed && !g.isKept() {
				s.evacuate(n, rule{needs: maxHits + 1}, Room)
			}
		})
		s.mu.Unlock()
	}
}

// awaitWriter waits until buffers of the store are free, so that it drops nothing.
func (c *Cache) awaitWriter() {
	for st := c.disk.Stats(); st.AppendedBytes+st.RewrittenBytes > st.WrittenBytes+1<<20; st = c.disk.Stats() {
		runtime.Gosched()
	}
}

// isInMemory and isOnDisk report where an entry is.
func (c *Cache) isInMemory(key string) bool { return c.found([]byte(key)).it != nil }

func (c *Cache) isOnDisk(key string) bool {
	h := c.seed.Bytes([]byte(key))
	return c.shardOf(h).tier.has(h)
}

// slotOnDisk returns the slot of the only record with the tag of key, or 0.
func (c *Cache) slotOnDisk(key string) diskSlot {
	h := c.seed.Bytes([]byte(key))
	words, _ := c.shardOf(h).tier.slots(h)
	return words[0]
}

// onDisk returns a cache with a disk tier.
func onDisk(t testing.TB, o Options) *Cache {
	if o.MaxBytes == 0 {
		o.MaxBytes = MinBytes
	}
	if o.Disk == nil {
		o.Disk = &Disk{}
	}
	if o.Disk.Dir == "" {
		o.Disk.Dir = t.TempDir()
	}
	if o.Disk.MaxBytes == 0 {
		o.Disk.MaxBytes = 8 << 20
	}
	c := newShared(t, o)
	if c.diskOff != nil {
		t.Fatal(c.diskOff)
	}
	return c
}

// TestCallsOnDisk: a call does the same for an entry on disk alone, and for one that a read has
// brought to memory. When the entry is evicted again, the disk has the entry that the call stored.
func TestCallsOnDisk(t *testing.T) {
	const key = "key"
	k := []byte(key)
	old := Entry{Value: []byte("old"), Flags: 7, TTL: 100 * time.Second}
	next := Entry{Value: []byte("next"), Flags: 8, TTL: 50 * time.Second}
	touched, marked := old, old
	touched.TTL, marked.Flags = 50*time.Second, 9
	update := func(change Change) func(c *Cache, version uint64) any {
		return func(c *Cache, version uint64) any {
			v := must(c.Update(k, func(e *Entry, found bool) Change {
				if !found || e.Version != version || string(e.Value) != "old" || e.Flags != 7 || e.TTL != old.TTL {
					t.Errorf("Update finds %t, %+v, want version %d", found, e, version)
				}
				if change != Mark {
					*e = next
				}
				e.Flags = 9
				return change
			}))
			return v == version
		}
	}
	stored := next
	stored.Flags = 9
	gone := Entry{}
	for name, tt := range map[string]struct {
		do    func(c *Cache, version uint64) any
		want  any
		after Entry // without a Value if key has none
	}{
		"Get": {func(c *Cache, _ uint64) any { b, _ := c.Get(nil, k); return string(b) }, "old", old},
		"View": {func(c *Cache, version uint64) (same any) {
			c.View(k, func(e Entry) { same = e.Version == version && e.Flags == 7 && e.TTL == old.TTL })
			return same
		}, true, old},
		"Peek": {func(c *Cache, _ uint64) any { return c.Peek(k, func(Entry) {}) }, true, old},
		"GetMany": {func(c *Cache, _ uint64) (n any) {
			c.GetMany([][]byte{k}, func(_ int, e Entry) { n = len(e.Value) })
			return n
		}, 3, old},
		"GetOrLoad":      {func(c *Cache, _ uint64) any { return string(must(c.GetOrLoad(t.Context(), nil, k, nil))) }, "old", old},
		"Set":            {func(c *Cache, _ uint64) any { return c.Set(k, []byte("set")) }, nil, Entry{Value: []byte("set")}},
		"Put":            {func(c *Cache, version uint64) any { return must(c.Put(k, next)) > version }, true, next},
		"Put, expired":   {func(c *Cache, _ uint64) any { return must(c.Put(k, Entry{TTL: -1})) }, uint64(0), gone},
		"Set, too large": {func(c *Cache, _ uint64) any { return c.Set(k, make([]byte, MinBytes)) == nil }, false, gone},
		"Add":            {func(c *Cache, _ uint64) any { return must(c.Add(k, next)) }, false, old},
		"Replace":        {func(c *Cache, _ uint64) any { return must(c.Replace(k, next)) }, true, next},
		"Replace, large": {func(c *Cache, _ uint64) any {
			_, err := c.Replace(k, Entry{Value: make([]byte, MinBytes)})
			return err == nil
		}, false, old},
		"CompareAndSet":    {func(c *Cache, version uint64) any { return must(c.CompareAndSet(k, version, next)) }, true, next},
		"CompareAndSet, 0": {func(c *Cache, _ uint64) any { return must(c.CompareAndSet(k, 0, next)) }, false, old},
		"Update: Keep":     {update(Keep), true, old},
		"Update: Store":    {update(Store), false, stored},
		"Update: Remove":   {update(Remove), false, gone},
		"Update: Touch":    {update(Touch), true, touched},
		"Update: Mark":     {update(Mark), true, marked},
		"Touch":            {func(c *Cache, _ uint64) any { return c.Touch(k, next.TTL) }, true, touched},
		"Touch, expired":   {func(c *Cache, _ uint64) any { return c.Touch(k, -1) }, true, gone},
		"Delete":           {func(c *Cache, _ uint64) any { return c.Delete(k) }, true, gone},
		"Clear":            {func(c *Cache, _ uint64) any { c.Clear(); return c.Delete(k) }, false, gone},
		"Resize":           {func(c *Cache, _ uint64) any { c.Resize(2 * MinBytes); c.Resize(MinBytes); return true }, true, old},
		"another key":      {func(c *Cache, _ uint64) any { return c.Set([]byte("other"), nil) }, nil, old},
	} {
		for _, promoted := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " promoted ", promoted), func(t *testing.T) {
				c := onDisk(t, Options{})
				c.fake()
				version := must(c.Put(k, old))
				c.toDisk()
				if promoted {
					get(t, c, key, "old")
				}
				if c.isInMemory(key) != promoted || !c.isOnDisk(key) {
					t.Fatalf("in memory %t, on disk %t", c.isInMemory(key), c.isOnDisk(key))
				}
				if got := tt.do(c, version); got != tt.want {
					t.Errorf("it returns %v, want %v", got, tt.want)
				}
				for range 2 {
					found := c.Peek(k, func(e Entry) {
						if string(e.Value) != string(tt.after.Value) || e.Flags != tt.after.Flags || e.TTL != tt.after.TTL || e.Version < version {
							t.Errorf("%+v, want %+v", e, tt.after)
						}
						version = e.Version
					})
					if found != (tt.after.Value != nil) {
						t.Errorf("there is an entry: %t", found)
					}
					c.toDisk()
				}
				if c.isInMemory(key) {
					t.Error("it stays in memory")
				}
				c.check()
			})
		}
	}
}

// TestExpiryOnDisk: an entry on disk expires when it would have in memory. Its reads change its TTL
// and its access, and its age goes on.
func TestExpiryOnDisk(t *testing.T) {
	c := onDisk(t, Options{TTL: 10 * time.Second})
	clock := c.fake()
	must(0, c.Set([]byte("key"), []byte("value")))
	c.toDisk()
	clock.now += 9 * time.Second
	get(t, c, "key", "value")
	c.toDisk()
	clock.now += 2 * time.Second
	get(t, c, "key", "")
	if st := c.Stats(); c.Delete([]byte("key")) || st.Disk.Items != 0 {
		t.Errorf("an expired entry is deleted: %+v", st)
	}

	c = onDisk(t, Options{TTL: 10 * time.Second, Sliding: true, Access: true, RefreshAfter: 30 * time.Second})
	clock = c.fake()
	must(0, c.Set([]byte("key"), []byte("value")))
	for range 5 {
		c.toDisk()
		clock.now += 8 * time.Second
		c.Peek([]byte("key"), func(e Entry) {
			if e.Idle != 8*time.Second || e.Read != (clock.now > 8*time.Second) || e.TTL > 3*time.Second {
				t.Errorf("%+v at %v", e, clock.now)
			}
		})
		get(t, c, "key", "value")
		h := c.seed.Bytes([]byte("key"))
		if due := c.isDue(h, []byte("key")); due != (clock.now > 30*time.Second) {
			t.Errorf("at %v it is due: %t", clock.now, due)
		}
	}
}

// TestTouchOnDisk: a touched entry on disk is due for a refresh when it was, as one in memory is. It
// stays, even if its old TTL passes during the call.
func TestTouchOnDisk(t *testing.T) {
	k := []byte("key")
	for name, touch := range map[string]func(c *Cache) bool{
		"Touch": func(c *Cache) bool { return c.Touch(k, time.Hour) },
		"Update": func(c *Cache) bool {
			_, err := c.Update(k, func(e *Entry, found bool) Change { e.TTL = time.Hour; return Touch })
			return err == nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := onDisk(t, Options{RefreshAfter: 30 * time.Second})
			clock := c.fake()
			must(0, c.Set(k, k))
			c.toDisk()
			clock.now = 20 * time.Second
			touch(c)
			for _, now := range []time.Duration{29, 31} {
				clock.now = now * time.Second
				if due := c.isDue(c.seed.Bytes(k), k); due != (now > 30) {
					t.Errorf("at %v it is due: %t", clock.now, due)
				}
			}
		})
	}
	for at, passed := 1, true; passed; at++ {
		c := onDisk(t, Options{})
		clock := c.fake()
		must(0, c.SetTTL(k, k, time.Minute))
		c.toDisk()
		clock.at, clock.hook = at, func() { clock.now = 2 * time.Minute }
		if touched := c.Touch(k, time.Hour); touched != c.Delete(k) {
			t.Errorf("the TTL passes at look %d: Touch returns %t", at, touched)
		}
		passed = clock.now > 0
	}
}

// TestTouchWithoutMemory: an entry on disk that is touched, and finds no memory, is evicted. Update
// leaves it.
func TestTouchWithoutMemory(t *testing.T) {
	k := []byte("key")
	c := onDisk(t, Options{})
	must(0, c.Set(k, k))
	c.toDisk()
	s := &c.shards[0]
	s.mu.Lock()
	for len(s.spares) > 0 {
		s.releaseSpare()
	}
	limit := s.limit
	s.limit = s.used
	s.mu.Unlock()
	_, err := c.Update(k, func(*Entry, bool) Change { return Touch })
	if !errors.Is(err, freehold.ErrOutOfMemory) || !c.isOnDisk("key") {
		t.Errorf("Update: %v; on disk %t", err, c.isOnDisk("key"))
	}
	touched := c.Touch(k, time.Hour)
	if n := c.Stats().Disk.Evicted; touched || n != 1 || c.isOnDisk("key") || c.isInMemory("key") {
		t.Errorf("Touch returns %t; %d evicted, on disk %t, in memory %t", touched, n, c.isOnDisk("key"), c.isInMemory("key"))
	}
	s.limit = limit
	c.check()
}

// TestOfOnDisk: a typed cache finds its values on disk, also after a restart.
func TestOfOnDisk(t *testing.T) {
	type page struct{ N, Version [50]int }
	o := OfOptions[string, page]{Options: Options{MaxBytes: MinBytes, Disk: &Disk{Dir: t.TempDir(), MaxBytes: 8 << 20}}}
	for run := range 2 {
		c := newOf(t, &o)
		for n := range 100 {
			key, old, want := fmt.Sprint("page ", n), page{}, page{}
			for i := range want.N {
				old.N[i], want.N[i], want.Version[i] = n, n, 1
			}
			if v, ok := c.Get(key); ok != (run == 1) || ok && v != want {
				t.Errorf("run %d: %q has %+v", run, key, v)
			}
			must(0, c.Set(key, old))
			c.toDisk()
			if _, err := c.Update(key, func(e *EntryOf[page], found bool) Change {
				if !found || e.Value != old {
					t.Errorf("Update of %q finds %t, %+v", key, found, e)
				}
				e.Value = want
				return Store
			}); err != nil {
				t.Error(err)
			}
			c.toDisk()
			if v, ok := c.Get(key); !ok || v != want {
				t.Errorf("%q has %+v", key, v)
			}
		}
		c.toDisk()
		c.Close()
	}
}

// TestEqualTags: an item with a version of its own is written to disk, although an entry of another
// key there has the same hash bits. A promoted item is not written again, also after it was copied.
func TestEqualTags(t *testing.T) {
	c := onDisk(t, Options{})
	c.sameSeed(1)
	c.raise(c.highestVersion())
	s, tr := &c.shards[0], c.shards[0].tier
	h := c.seed.Bytes([]byte("own"))
	insertOther := func() {
		at, _ := c.disk.Append(&disk.Record{Key: []byte("other"), Value: []byte("other")})
		s.mu.Lock()
		defer s.mu.Unlock()
		tr.hasBuckets(tr.part(h))
		tr.insert(h, diskSlotOf(tagOf(h), at, 64))
	}
	insertOther()
	if get(t, c, "own", ""); !c.isOnDisk("own") {
		t.Error("a miss forgets the record of another key")
	}
	must(0, c.SetTTL([]byte("open"), nil, time.Hour))
	must(0, c.Set([]byte("own"), nil))
	must(0, c.SetTTL([]byte("own"), []byte("value"), time.Hour))
	if c.found([]byte("own")).it.shape&versioned == 0 {
		t.Fatal("it has no version of its own")
	}
	insertOther()
	c.toDisk()
	insertOther()
	insertOther() // in the home of own, behind it
	written := tr.written
	get(t, c, "own", "value")
	s.mu.Lock()
	own := c.found([]byte("own"))
	version := s.version(own.w, own.it)
	s.keep(own.at, own.it, true, 0)
	if own = c.found([]byte("own")); s.version(own.w, own.it) != version {
		t.Errorf("version %d, which the disk has too, becomes %d in a copy", version, s.version(own.w, own.it))
	}
	s.mu.Unlock()
	c.toDisk()
	if get(t, c, "own", "value"); tr.written != written {
		t.Errorf("%d records are written for an entry that is there", tr.written-written)
	}
	if _, n := tr.slots(h); n != 4 || c.Stats().Disk.Errors > 0 {
		t.Errorf("%d slots with the tag after the reads of one key, want 4", n)
	}
	c.check()
}
