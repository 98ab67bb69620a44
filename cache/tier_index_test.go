package cache

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/freehold-go/freehold/internal/disk"
)

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

// TestShrunkIndexOnDisk: Resize counts the entries for which a smaller index has no room.
func TestShrunkIndexOnDisk(t *testing.T) {
	c := onDisk(t, Options{MaxBytes: 4 * MinBytes, Disk: &Disk{MaxBytes: 32 << 20}})
	for n := range 9_000 {
		if must(0, c.Set(fmt.Append(nil, "key ", n), nil)); n%4000 == 0 {
			c.toDisk()
		}
	}
	c.toDisk()
	before := c.Stats().Disk
	c.Resize(MinBytes)
	c.check()
	d := c.Stats().Disk
	if lost := d.Evicted - before.Evicted; lost == 0 || int(lost) != before.Items-d.Items || d.IndexBytes > MinBytes/tierShare {
		t.Errorf("%+v, before %+v", d, before)
	}
}

// TestIndexWaitsForMemory: a full index without memory drops slots, and gets a chunk when the shard
// makes room the next time, if it still needs one.
func TestIndexWaitsForMemory(t *testing.T) {
	c := onDisk(t, Options{MaxBytes: 4 * MinBytes})
	s, tr := &c.shards[0], c.shards[0].tier
	s.mu.Lock()
	ix := &tr.parts[0]
	tr.hasBuckets(ix)
	held := s.limit - s.used
	s.used += held
	for r := rand.New(rand.NewPCG(1, 1)); tr.evicted == 0; {
		h := r.Uint64()
		tr.insert(h, diskSlotOf(tagOf(h), disk.Place(r.Uint32()), 64))
	}
	if tr.wants != ix || ix.Chunks() != 1 {
		t.Errorf("it waits: %t, with %d chunks", tr.wants == ix, ix.Chunks())
	}
	s.used -= held
	for range 2 {
		s.makeRoom(0)
		if tr.wants != nil || ix.Chunks() != 2 || !ix.Grow(1) {
			t.Errorf("it waits: %t, with %d chunks", tr.wants == ix, ix.Chunks())
		}
		tr.wants = ix
	}
	tr.clear()
	s.mu.Unlock()
	c.check()
}

// TestReadsGrowIndex: the index in memory grows for entries that reads bring there.
func TestReadsGrowIndex(t *testing.T) {
	const keys = 1000
	o := Options{Disk: &Disk{Dir: t.TempDir()}}
	c := onDisk(t, o)
	key := func(n int) []byte { return fmt.Append(nil, "key ", n) }
	for n := range keys {
		must(0, c.Set(key(n), nil))
	}
	c.toDisk()
	c.Close()
	c = onDisk(t, o)
	for n := range keys {
		c.Get(nil, key(n))
	}
	if n := c.Stats().Len; n < keys*9/10 {
		t.Errorf("%d entries of %d are in memory", n, keys)
	}
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
