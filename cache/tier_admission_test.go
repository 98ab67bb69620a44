package cache

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/freehold-go/freehold/internal/disk"
)

// TestAdmission: OnEvict is called for an evicted entry that is not written to disk, and for no entry
// that is.
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
	c.Peek([]byte("large"), func(Entry) {})
	if d := c.Stats().Disk; c.isInMemory("large") || d.Hits != 0 || c.slotOnDisk("large")&diskHit != 0 {
		t.Errorf("Peek counts as a read: %+v", d)
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

// TestSampling: a quarter of the never-read entries go to a full disk that has few hits. All go to a
// disk that has room, no hits, or many. Entries that were read always go there.
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

// TestPromotedWithoutRecord: an entry of both tiers whose record is overwritten goes to disk again.
func TestPromotedWithoutRecord(t *testing.T) {
	c := onDisk(t, Options{})
	must(0, c.Set([]byte("key"), []byte("value")))
	c.toDisk()
	get(t, c, "key", "value")
	h := c.seed.Bytes([]byte("key"))
	owner{weak.Make(c)}.Forget(h, c.slotOnDisk("key").place())
	c.toDisk()
	get(t, c, "key", "value")
	if d := c.Stats().Disk; d.Written != 2 || d.Evicted != 1 {
		t.Errorf("%+v", d)
	}
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
