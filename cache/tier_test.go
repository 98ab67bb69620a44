package cache

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/cuckoo"
	"github.com/freehold-go/freehold/internal/disk"
	"github.com/freehold-go/freehold/internal/hash"
	"github.com/freehold-go/freehold/internal/panics"
)

// restart closes the cache of a model and opens it again. Entries that were on disk are there,
// unless it was killed.
func (m *model) restart(killed bool) {
	m.reads += m.c.Stats().Disk.Hits
	left := -int(m.c.Stats().Disk.Evicted) // that leave the disk meanwhile
	for key := range m.want {
		h := m.c.seed.Bytes([]byte(key))
		s := m.c.shardOf(h)
		if killed || !s.tier.has(h) {
			delete(m.want, key)
		}
	}
	o, begin, now := m.c.options, m.c.clock.begin, m.clock.now
	m.c.Close()
	left += int(m.c.Stats().Disk.Evicted)
	if killed {
		if err := os.Remove(filepath.Join(o.Disk.Dir, "freehold.disk.index")); err != nil {
			m.t.Fatal(err)
		}
	}
	m.open(o)
	m.lost -= left
	m.c.clock.begin = begin
	m.clock = m.c.fake()
	m.clock.now = now
	if st := m.c.Stats().Disk; st.Off != nil || killed && st.Items > 0 {
		m.t.Fatalf("%+v", st)
	}
}

// sameSeed gives a cache that is empty the same seed in each run, so that equal tags are too.
func (c *Cache) sameSeed(n uint64) {
	c.seed = hash.SeedOf([3]uint64{n * 0x9E3779B97F4A7C15, n * 0xD1B54A32D192ED03, n * 0x8CB92BA72F3D8DD7})
}

// TestProgramsOnDisk: nearly all entries are on disk, and all calls mean the same. An entry may
// only leave the disk, which is counted. Restarts keep what is on disk; kills lose it.
func TestProgramsOnDisk(t *testing.T) {
	for name, o := range map[string]Options{
		"small":    {MaxBytes: MinBytes},
		"accessed": {MaxBytes: 5 * MinBytes, Access: true, RefreshAfter: 1 << 40},
		"shards":   {MaxBytes: 9 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			o.Disk = &Disk{Dir: t.TempDir(), MaxBytes: 8 << 20}
			m := newModel(t, alloctest.New(t), o)
			defer func() { m.c.Close() }()
			m.c.sameSeed(1)
			steps := 20_000
			if testing.Short() {
				steps = 1_000
			}
			m.run(program(uint64(o.MaxBytes), steps))
			st := m.c.Stats()
			t.Logf("%+v", st)
			if m.reads+st.Disk.Hits == 0 {
				t.Errorf("nothing was read on disk: %+v", st.Disk)
			}
		})
	}
}

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
	for st := c.disk.Stats(); st.AppendedBytes+st.AgainBytes > st.WrittenBytes+1<<20; st = c.disk.Stats() {
		runtime.Gosched()
	}
}

// isInMemory and isOnDisk report where an entry is.
func (c *Cache) isInMemory(key string) bool { return c.found([]byte(key)).it != nil }

func (c *Cache) isOnDisk(key string) bool {
	h := c.seed.Bytes([]byte(key))
	return c.shardOf(h).tier.has(h)
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

// TestCallsOnDisk: a call does the same for an entry that is on disk only, and for one that a read
// has brought to memory. When the entry is evicted again, the disk has what the call has stored.
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

// TestAdmission: what is not written to disk is dropped, and OnEvict is told. What is written is
// not.
func TestAdmission(t *testing.T) {
	dropped := map[string]Reason{}
	c := onDisk(t, Options{
		Disk: &Disk{MinValue: 100}, Negative: time.Hour,
		OnEvict: func(key []byte, _ Entry, why Reason) { dropped[string(key)] = why },
	})
	c.fake()
	must(0, c.Set([]byte("small"), make([]byte, 99)))
	must(0, c.Set([]byte("large"), make([]byte, 100)))
	must(0, c.SetTTL([]byte("short"), make([]byte, 200), 1500*time.Millisecond))
	must(c.Put([]byte("kept"), Entry{Value: make([]byte, 200), Kept: true}))
	c.GetOrLoad(t.Context(), nil, []byte("absent"), func(context.Context) (Entry, error) { return Entry{}, ErrNotFound })
	c.toDisk()
	st := c.Stats()
	if want := map[string]Reason{"small": Room, "short": Room}; !maps.Equal(dropped, want) || st.Evicted != 2 || st.Len != 1 {
		t.Errorf("dropped %v, want %v: %+v", dropped, want, st)
	}
	if d := st.Disk; !c.isOnDisk("large") || d.Items != 1 || d.Written != 1 || d.Rejected != 2 || d.Dropped != 0 {
		t.Errorf("%+v", d)
	}
	get(t, c, "large", string(make([]byte, 100)))
	c.toDisk()
	if d := c.Stats().Disk; d.Written != 1 || d.Hits != 1 {
		t.Errorf("an entry that is there is written again: %+v", d)
	}
}

// TestSampling: few of the entries that were never read go to a full disk whose entries are seldom
// read. All go there while there is room, if nobody reads, and if many are read. Those that were
// read do always.
func TestSampling(t *testing.T) {
	for _, test := range []struct {
		full bool
		hits uint64
		want int // of 4
	}{
		{false, 1, 4}, {true, 0, 4}, {true, 1, 1}, {true, learnItems/2 - 1, 1}, {true, learnItems / 2, 4},
	} {
		tr := &tier{full: test.full, hits: 10 + test.hits, hitsThen: 10}
		for range learnItems {
			tr.declines(0)
		}
		n := 0
		for i := range uint64(4) {
			if !tr.declines(i << sampleShift) {
				n++
			}
		}
		if n != test.want {
			t.Errorf("%d of 4 are written, want %d: %+v", n, test.want, test)
		}
		for range learnItems {
			tr.declines(0)
		}
		if tr.samples {
			t.Errorf("nobody reads any more: %+v", test)
		}
	}

	c := onDisk(t, Options{})
	must(0, c.Set([]byte("key"), nil))
	r, tr := c.found([]byte("key")), c.shards[0].tier
	tr.full, tr.samples = true, true
	for i := range 8 {
		main, hits, h := i&1 != 0, i>>1&1, uint64(i>>2)<<sampleShift
		want := main || hits > 0 || h == 0
		if tr.admits(r.it, &segment{}, slotOf(0, 1, main, hits), h) != want || int(tr.rejected) != i/4 {
			t.Errorf("main %t, %d hits, hash %x: want written %t; %d rejected", main, hits, h, want, tr.rejected)
		}
	}
	most := disk.MostBytes&^(disk.UnitBytes-1) - disk.HeadBytes - len("key")
	for bytes, want := range map[int]bool{most: true, most + 1: false} {
		r.it.valueBytes = uint32(bytes)
		if got := tr.admits(r.it, &segment{}, slotOf(0, 1, true, 0), 0); got != want {
			t.Errorf("%d bytes are written: %t", bytes, got)
		}
	}
	r.it.valueBytes = 0
}

// TestRing: a record that was hit is written again when its region is overwritten; others leave.
// The index keeps to its part of memory.
func TestRing(t *testing.T) {
	c := onDisk(t, Options{})
	value := make([]byte, 1000)
	must(0, c.Set([]byte("hit"), []byte("value")))
	must(0, c.Set([]byte("other"), []byte("value")))
	c.toDisk()
	get(t, c, "hit", "value")
	for n := 0; c.isOnDisk("other"); n++ {
		key := fmt.Append(nil, "filler ", n)
		if must(0, c.Set(key, value)); n%32 == 0 {
			c.toDisk()
			c.awaitWriter()
		}
	}
	if !c.isOnDisk("hit") {
		t.Error("a record that was hit is gone")
	}
	get(t, c, "other", "")
	get(t, c, "hit", "value")
	c.check()
	if st := c.Stats(); st.Disk.Evicted == 0 || st.Reserved > st.MaxBytes {
		t.Errorf("%+v", st)
	}
}

// TestIndexOnDisk: an index that may not grow drops the oldest entries, and one that shrinks drops
// some.
func TestIndexOnDisk(t *testing.T) {
	const keys = 16_000
	c := onDisk(t, Options{Disk: &Disk{MaxBytes: 32 << 20}})
	key := func(n int) []byte { return fmt.Append(nil, "key ", n) }
	for n := range keys {
		if must(0, c.Set(key(n), key(n))); n%100 == 0 {
			c.toDisk()
		}
	}
	c.toDisk()
	c.check()
	newer := 0
	st := c.Stats()
	for n := range keys {
		if c.isOnDisk(string(key(n))) && n >= keys-st.Disk.Items {
			newer++
		}
	}
	d := st.Disk
	if d.IndexBytes > MinBytes/2 || d.IndexBytes < MinBytes/4 || d.Items*12 < d.IndexBytes || newer < d.Items*8/10 || d.Items+int(d.Evicted) < int(d.Written)-20 { // some have equal tags
		t.Errorf("%d of the newest are there: %+v", newer, st)
	}
	c.Resize(MinBytes * 3)
	c.Resize(MinBytes)
	c.check()
	for n := 0; n < keys; n += 64 {
		c.Get(nil, key(n))
	}
	c.check()
}

// TestSweepOfIndex: a sweep returns the memory of an index that is nearly empty, or whose disk is
// off.
func TestSweepOfIndex(t *testing.T) {
	for name, empty := range map[string]func(c *Cache){
		"cleared": (*Cache).Clear,
		"off": func(c *Cache) {
			for n := 0; c.Stats().Disk.Off == nil; n++ { // the writer makes the file longer again
				must(0, os.Truncate(filepath.Join(c.options.Disk.Dir, "freehold.disk"), 0))
				c.Peek(fmt.Append(nil, "key ", n%16_000), func(Entry) {})
			}
			must(0, c.Set([]byte("key"), nil))
			c.toDisk()
			if !c.shards[0].woken {
				t.Error("no sweep is to come")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := onDisk(t, Options{Disk: &Disk{MaxBytes: 32 << 20}})
			c.fake()
			for n := range 16_000 {
				if must(0, c.Set(fmt.Append(nil, "key ", n), make([]byte, 200))); n%100 == 0 {
					c.toDisk()
				}
			}
			before := c.Stats()
			empty(c)
			c.sweep()
			st := c.Stats()
			if least := len(c.shards[0].tier.parts) * c.segmentBytes; st.Disk.Items != 0 || st.Disk.IndexBytes != least || before.Disk.IndexBytes < 4*least {
				t.Errorf("%+v, before %+v", st.Disk, before.Disk)
			}
			if lost := st.Disk.Errors - before.Disk.Errors; name == "off" && lost != uint64(before.Disk.Items) {
				t.Errorf("%d entries of %d are counted as lost", lost, before.Disk.Items)
			}
			c.check()
		})
	}
}

// TestRefreshOnDisk: an entry that memory has no room for is loaded again when it is due.
func TestRefreshOnDisk(t *testing.T) {
	c := onDisk(t, Options{RefreshAfter: 10 * time.Second})
	clock := c.fake()
	old := strings.Repeat("old ", 25_000)
	must(0, c.Set([]byte("key"), []byte(old)))
	c.toDisk()
	for _, want := range []string{old, old, old, "new"} {
		got := must(c.GetOrLoad(t.Context(), nil, []byte("key"), func(context.Context) (Entry, error) {
			if clock.now < 10*time.Second {
				t.Error("it is loaded too early")
			}
			return Entry{Value: []byte("new")}, nil
		}))
		c.refreshes.wait()
		if string(got) != want {
			t.Errorf("%.10q, want %.10q", got, want)
		}
		clock.now += 6 * time.Second
	}
}

// TestGetContext: a ctx that is done ends a read of the disk, and no read of memory.
func TestGetContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := onDisk(t, Options{})
	for _, key := range []string{"memory", "disk", "both"} {
		must(0, c.Set([]byte(key), []byte("value")))
	}
	c.toDisk()
	must(0, c.Set([]byte("memory"), []byte("value")))
	for _, done := range []bool{false, true} {
		for key, want := range map[string]struct {
			value string
			err   error
		}{"memory": {"value", nil}, "both": {"value", nil}, "disk": {"", context.Canceled}, "none": {"", nil}} {
			if key == "disk" && !done {
				continue
			}
			before := c.Stats()
			got, ok, err := c.GetContext(ctx, []byte("x"), []byte(key))
			if string(got) != "x"+want.value || ok != (want.value != "") || err != want.err {
				t.Errorf("done %t: %q has %q, %t, %v", done, key, got, ok, err)
			}
			if st := c.Stats(); err != nil && (st.Hits != before.Hits || st.Misses != before.Misses) {
				t.Errorf("%+v, before %+v", st, before)
			}
		}
		cancel()
	}
	if got, ok, err := c.GetContext(context.Background(), nil, []byte("disk")); string(got) != "value" || !ok || err != nil {
		t.Errorf("%q, %t, %v", got, ok, err)
	}
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

// slotOnDisk returns the slot of the only record with the tag of key, or 0.
func (c *Cache) slotOnDisk(key string) diskSlot {
	h := c.seed.Bytes([]byte(key))
	words, _ := c.shardOf(h).tier.slots(h)
	return words[0]
}

// TestOwner: a record is written again only if it has not expired and is still referred to. If a
// region is lost, its records are forgotten, and no others.
func TestOwner(t *testing.T) {
	c := onDisk(t, Options{})
	clock := c.fake()
	keys := []string{"one", "two", "three"}
	for _, key := range keys {
		must(0, c.SetTTL([]byte(key), []byte("value"), 100*time.Second))
		c.toDisk()
	}
	place := func(i int) disk.Place { return c.slotOnDisk(keys[i]).place() }
	o := owner{weak.Make(c)}
	expires := c.clock.fixed(c.clock.expires(100 * time.Second))
	rewrite := func(at disk.Place) bool {
		h := c.seed.Bytes([]byte("one"))
		before := place(0)
		o.Rewrite(at, &disk.Record{Hash: h, Key: []byte("one"), Value: []byte("value"), Meta: disk.Meta{Expires: expires}})
		return place(0) != before
	}
	at := place(0)
	if !rewrite(at) || rewrite(at) {
		t.Error("a record is not written again, or one that is not referred to is")
	}
	get(t, c, "one", "value")
	c.toDisk()
	for i, bounds := range [][2]disk.Place{{place(1) + 1, place(2)}, {place(1), place(1) + 1}, {place(2), place(2) + 1}} {
		o.Lost(bounds[0], bounds[1])
		for n := range keys {
			if want := n == 0 || n > i; c.isOnDisk(keys[n]) != want {
				t.Errorf("after Lost from %d to %d, %q is on disk: %t", bounds[0], bounds[1], keys[n], !want)
			}
		}
	}
	if st := c.Stats().Disk; st.Errors != 2 {
		t.Errorf("%+v", st)
	}
	clock.now += 99 * time.Second
	if !rewrite(place(0)) {
		t.Error("a record is not written again in its last second")
	}
	clock.now += time.Second
	if rewrite(place(0)) {
		t.Error("an expired record is written again")
	}
}

// TestSettleGivesUp: a call that finds other slots after each read of the disk forgets them in the
// end.
func TestSettleGivesUp(t *testing.T) {
	c := onDisk(t, Options{})
	must(0, c.Set([]byte("key"), []byte("value")))
	c.toDisk()
	s, h := &c.shards[0], c.seed.Bytes([]byte("key"))
	s.mu.Lock()
	defer s.mu.Unlock()
	for tries := range fetches + 1 {
		r, _, ok := s.tier.settle(h, &diskCopy{}, tries)
		if gaveUp := tries == fetches; r.it != nil || ok != gaveUp || s.tier.has(h) == gaveUp || (s.tier.evicted == 1) != gaveUp {
			t.Errorf("try %d: %t, has a slot: %t, %d evicted", tries, ok, s.tier.has(h), s.tier.evicted)
		}
	}
}

// TestCutIndex: an index that ends early is an error, wherever it ends.
func TestCutIndex(t *testing.T) {
	c := onDisk(t, Options{Format: "format"})
	for n := range 10 {
		must(0, c.Set(fmt.Append(nil, "key ", n), []byte("value")))
	}
	c.toDisk()
	var index bytes.Buffer
	must(0, c.saveDisk(&index))
	other := onDisk(t, Options{Format: "format"})
	for n := range index.Len() + 1 {
		other.Clear()
		if err := other.loadDisk(bytes.NewReader(index.Bytes()[:n])); (err == nil) != (n == index.Len()) {
			t.Errorf("an index of %d bytes of %d: %v", n, index.Len(), err)
		}
	}
	if n := other.Stats().Disk.Items; n != 10 {
		t.Errorf("%d entries of 10", n)
	}
}

// TestAgeAfterRestart: an index that has no memory drops the oldest records also after a restart.
func TestAgeAfterRestart(t *testing.T) {
	dir := t.TempDir()
	o := Options{Disk: &Disk{Dir: dir}}
	c := onDisk(t, o)
	tr := c.shards[0].tier
	for n, last := 0, disk.Place(0); tr.newest >= last; n++ { // until the second lap
		last = tr.newest
		must(0, c.Set(fmt.Append(nil, "key ", n), make([]byte, 10_000)))
		c.toDisk()
		c.awaitWriter()
	}
	c.Close()
	c = onDisk(t, o)
	tr = c.shards[0].tier
	var all []diskSlot
	tr.each(&tr.parts[0], func(_ uint64, w diskSlot) bool { all = append(all, w); return true })
	slices.SortFunc(all, func(a, b diskSlot) int {
		return cmp.Or(cmp.Compare(tr.store.Life(a.place()), tr.store.Life(b.place())), cmp.Compare(a.place(), b.place()))
	})
	if len(all) < 100 {
		t.Fatalf("%d records", len(all))
	}
	if !slices.IsSortedFunc(all, func(a, b diskSlot) int { return cmp.Compare(tr.newest-b.place(), tr.newest-a.place()) }) {
		t.Errorf("newest is %d", tr.newest)
	}
}

// TestRestartOnDisk: the entries on disk are there after Close and New, with their versions, if the
// options fit. After a crash they are not.
func TestRestartOnDisk(t *testing.T) {
	dir := t.TempDir()
	key, long := "key", strings.Repeat("long key ", 20)
	o := Options{MaxBytes: 9 << 20, Format: "1", Disk: &Disk{Dir: dir, MaxBytes: 8 << 20}}
	version := uint64(0)
	for name, change := range map[string]func(o *Options){
		"the same":      func(*Options) {},
		"fewer shards":  func(o *Options) { o.MaxBytes = MinBytes },
		"more shards":   func(o *Options) { o.MaxBytes *= 8 },
		"other format":  func(o *Options) { o.Format = "22" },
		"other formats": func(o *Options) { o.Format = "2" },
		"other extras":  func(o *Options) { o.Access = true },
		"other size":    func(o *Options) { o.Disk = &Disk{Dir: dir, MaxBytes: 16 << 20} },
		"killed":        func(*Options) { must(0, os.Remove(filepath.Join(dir, "freehold.disk.index"))) },
	} {
		t.Run(name, func(t *testing.T) {
			c := New(newHeap(t), &o)
			c.raise(c.highestVersion() + 1<<50) // the system's clock is set back then
			must(0, c.Set([]byte(long), []byte("value")))
			version = must(c.Put([]byte(key), Entry{Value: []byte("value"), Flags: 3, TTL: time.Hour}))
			c.toDisk()
			must(0, c.Set([]byte("memory"), nil))
			c.Close()
			highest.Store(0) // as in another process
			again := o
			change(&again)
			c = New(newHeap(t), &again)
			defer c.Close()
			if st := c.Stats().Disk; st.Off != nil {
				t.Fatal(st.Off)
			}
			warm := name == "the same" || name == "fewer shards"
			found := c.View([]byte(key), func(e Entry) {
				if string(e.Value) != "value" || e.Flags != 3 || e.TTL < 59*time.Minute || e.TTL > time.Hour || e.Version != version {
					t.Errorf("%+v, want version %d", e, version)
				}
			})
			if _, ok := c.Get(nil, []byte(long)); found != warm || ok != warm {
				t.Errorf("found: %t, %t", found, ok)
			}
			if n := c.Stats().Disk.Items; !warm && n > 0 {
				t.Errorf("%d entries of another cache", n)
			}
			if v := must(c.Put([]byte(key), Entry{})); v <= version && warm {
				t.Errorf("version %d after %d", v, version)
			}
			c.check()
		})
	}
}

// TestDiskFails: damaged records are misses, and a disk that fails or cannot be opened is not used.
func TestDiskFails(t *testing.T) {
	c := onDisk(t, Options{})
	file := filepath.Join(c.options.Disk.Dir, "freehold.disk")
	for n := range 100 {
		must(0, c.Set(fmt.Append(nil, "key ", n), make([]byte, 20_000)))
	}
	c.toDisk()
	for c.Stats().Disk.WrittenBytes == 0 {
		runtime.Gosched()
	}
	b := must(os.ReadFile(file))
	for i := 5000; i < len(b); i += 5000 {
		b[i] ^= 1
	}
	must(0, os.WriteFile(file, b, 0))
	for n := range 100 {
		key := fmt.Append(nil, "key ", n)
		if c.View(key, func(e Entry) {
			if string(e.Value) != string(make([]byte, 20_000)) {
				t.Errorf("%q has wrong bytes", key)
			}
		}); !c.isInMemory(string(key)) && c.isOnDisk(string(key)) {
			t.Errorf("%q stays on disk", key)
		}
	}
	if st := c.Stats().Disk; st.Errors < 10 {
		t.Errorf("%+v", st)
	}
	must(0, os.Truncate(file, 0))
	for n := range 100 {
		c.Get(nil, fmt.Append(nil, "key ", n))
	}
	for n := 0; c.Stats().Disk.Off == nil; n++ { // the regions of those in memory
		key := fmt.Append(nil, "late ", n%100)
		must(0, c.Set(key, make([]byte, 20_000)))
		c.toDisk()
		c.Get(nil, key)
		must(0, os.Truncate(file, 0))
	}
	must(0, c.Set([]byte("key"), []byte("value")))
	get(t, c, "key", "value")
	c.toDisk()
	get(t, c, "key", "")
	c.check()

	second := newShared(t, Options{MaxBytes: MinBytes, Disk: c.options.Disk})
	if st := second.Stats().Disk; st.Off == nil || !strings.Contains(st.Off.Error(), "freehold.disk") {
		t.Errorf("two caches use one file: %+v", st)
	}
	must(0, second.Set([]byte("key"), []byte("value")))
	get(t, second, "key", "value")
	second.toDisk()
	get(t, second, "key", "")
}

// TestEvictWithoutDisk: OnEvict gets an entry of both tiers that leaves memory when the disk is off.
func TestEvictWithoutDisk(t *testing.T) {
	told := false
	c := onDisk(t, Options{OnEvict: func(key []byte, _ Entry, _ Reason) { told = told || string(key) == "key 99" }})
	for n := range 100 {
		must(0, c.Set(fmt.Append(nil, "key ", n), make([]byte, 20_000)))
		c.toDisk()
	}
	for c.Stats().Disk.WrittenBytes == 0 { // the region is written at once
		runtime.Gosched()
	}
	c.Get(nil, []byte("key 99"))
	if !c.isInMemory("key 99") || !c.isOnDisk("key 99") || told {
		t.Fatalf("%+v", c.Stats())
	}
	must(0, os.Truncate(filepath.Join(c.options.Disk.Dir, "freehold.disk"), 0))
	for n := 0; c.Stats().Disk.Off == nil; n++ { // the writer may not have freed its buffers yet
		c.Peek(fmt.Append(nil, "key ", n%99), func(Entry) {})
	}
	c.toDisk()
	get(t, c, "key 99", "")
	if !told {
		t.Error("OnEvict is not called")
	}
}

// TestBadDiskOptions: New panics for mistakes.
func TestBadDiskOptions(t *testing.T) {
	for want, o := range map[string]Options{
		"Disk without a Dir":              {Disk: &Disk{MaxBytes: 8 << 20}},
		"Disk.MaxBytes 8388607":           {Disk: &Disk{Dir: "x", MaxBytes: 8<<20 - 1}},
		"Disk.MinValue -1":                {Disk: &Disk{Dir: "x", MaxBytes: 8 << 20, MinValue: -1}},
		"Options.Disk together with Coll": {Disk: &Disk{Dir: "x", MaxBytes: 8 << 20}, Collect: true},
		"Options.Disk together with Keep": {Disk: &Disk{Dir: "x", MaxBytes: 8 << 20}, KeepAll: true},
	} {
		o.MaxBytes = MinBytes
		panics.Want(t, "freehold: cache.New: Options."+strings.TrimPrefix(want, "Options.")+"...", func() { New(freehold.Pages(), &o) })
	}
}

// TestEqualTags: an item with a version of its own is written to disk, although an entry of another
// key there has the same hash bits. A promoted item is not written again, also after it was copied.
func TestEqualTags(t *testing.T) {
	c := onDisk(t, Options{})
	c.raise(c.highestVersion())
	s, tr := &c.shards[0], c.shards[0].tier
	must(0, c.SetTTL([]byte("open"), nil, time.Hour))
	must(0, c.Set([]byte("own"), make([]byte, 99)))
	must(0, c.SetTTL([]byte("own"), []byte("value"), time.Hour))
	if c.found([]byte("own")).it.shape&versioned == 0 {
		t.Fatal("it has no version of its own")
	}
	at, _ := c.disk.Append(&disk.Record{Key: []byte("other"), Value: []byte("other")})
	h := c.seed.Bytes([]byte("own"))
	s.mu.Lock()
	tr.hasBuckets(tr.part(h))
	tr.insert(h, diskSlotOf(tagOf(h), at, 64))
	s.mu.Unlock()
	c.toDisk()
	written := tr.written
	get(t, c, "own", "value")
	s.mu.Lock()
	s.keep(c.found([]byte("own")).at, c.found([]byte("own")).it, true, 0)
	s.mu.Unlock()
	c.toDisk()
	if get(t, c, "own", "value"); tr.written != written {
		t.Errorf("%d records are written for an entry that is there", tr.written-written)
	}
	c.check()
}

// TestDropped: entries that the store does not take, and those without an index, count as dropped.
func TestDropped(t *testing.T) {
	c := onDisk(t, Options{})
	must(0, c.Set([]byte("one"), nil))
	c.shards[0].share = 0 // no memory for a chunk of the disk's index
	c.toDisk()
	if d := c.Stats().Disk; d.Dropped != 1 || d.Rejected != 0 || d.Written != 0 {
		t.Errorf("without an index: %+v", d)
	}
	c = onDisk(t, Options{})
	must(0, c.disk.Close(nil)) // it takes no more
	must(0, c.Set([]byte("two"), nil))
	c.toDisk()
	if d := c.Stats().Disk; d.Dropped != 1 || d.Rejected != 0 || d.Written != 0 {
		t.Errorf("without a buffer: %+v", d)
	}
}

// TestParts: an index file with other numbers of parts than the cache would have is loaded. The
// cache has no more parts than the file.
func TestParts(t *testing.T) {
	divided := func(n int) *Cache {
		c := onDisk(t, Options{})
		tr := c.shards[0].tier
		for tr.parts = make([]cuckoo.Index, n); n > 0; n-- {
			tr.parts[n-1].Init(c.segmentBytes, &c.readers, &c.seam)
		}
		return c
	}
	for _, n := range [][2]int{{1, 4}, {2, 4}, {4, 4}, {4, 1}} {
		from, to := divided(n[0]), divided(n[1])
		for i := range 100 {
			must(0, from.Set(fmt.Append(nil, "key ", i), nil))
		}
		from.toDisk()
		var index bytes.Buffer
		must(0, from.saveDisk(&index))
		if err := to.loadDisk(&index); err != nil || len(to.shards[0].tier.parts) != min(n[0], n[1]) {
			t.Errorf("%d parts of %d in the file: %v", len(to.shards[0].tier.parts), n[0], err)
		}
		for i := range 100 {
			if key := fmt.Sprint("key ", i); !to.isOnDisk(key) {
				t.Errorf("%q is lost, with %d parts", key, n)
			}
		}
		to.check()
	}
}
