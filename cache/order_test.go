//go:build freehold_seams && freehold_portable && !race

package cache

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/cuckoo"
	"github.com/freehold-go/freehold/internal/seam"
	"github.com/freehold-go/freehold/internal/test/await"
)

// refill deletes all entries, and reuses their memory for others.
func refill(c *Cache) {
	c.Clear()
	for i := range 2 * MinBytes / 100 {
		must(0, c.Set(fmt.Append(nil, "other ", i), bytes.Repeat([]byte{0xDD}, 100)))
	}
}

// TestReaderAgainstReclaim: at each step of a View, a writer empties the segment and reuses it.
func TestReaderAgainstReclaim(t *testing.T) {
	key, value := []byte("k"), checked([]byte("k"), 500)
	again := bytes.Repeat([]byte{'a'}, len(value))
	for name, write := range map[string]struct {
		do    func(c *Cache)
		after string // what a reader who comes later finds
	}{
		"reclaimed":     {refill, ""},
		"written again": {func(c *Cache) { refill(c); must(0, c.Set(key, []byte("again"))) }, "again"},
		"replaced":      {func(c *Cache) { must(0, c.Set(key, []byte("again"))) }, "again"},
		"rewritten":     {func(c *Cache) { must(0, c.Set(key, again)) }, string(again)},
		"deleted":       {func(c *Cache) { c.Delete(key) }, ""},
		"same place": {func(c *Cache) { // the same slot again
			c.Clear()
			must(0, c.Set(key, value))
		}, string(value)},
	} {
		for point, p := range map[string]seam.Point{"moves": readMoves, "slot": readSlot, "pinned": readPinned, "held": readHeld} {
			t.Run(name+" after "+point, func(t *testing.T) {
				c := newCache(t, Options{})
				must(0, c.Set(key, value))
				came := false
				c.seam.Once(p, 1, func() { came = true; write.do(c) })
				got := ""
				c.View(key, func(e Entry) {
					c.check()
					got = string(e.Value)
					for i := range 2 * MinBytes / 100 { // what is seen stays
						must(0, c.Set(fmt.Append(nil, "late ", i), make([]byte, 100)))
					}
					if string(e.Value) != got {
						t.Errorf("%q has become %q", got, e.Value)
					}
				})
				want := write.after
				if p == readHeld {
					want = string(value)
				}
				if !came || got != want {
					t.Errorf("the writer came: %t; View has %q, want %q", came, got, want)
				}
				if c.shards[0].isPinned() {
					t.Error("a pin is left")
				}
				c.check()
			})
		}
	}
}

// TestAllAgainstResize: All looks at a bucket under the lock of its shard, so that Resize does not
// free it.
func TestAllAgainstResize(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 1 << 20})
	must(0, c.Set([]byte("k"), []byte("v")))
	done := make(chan bool, 1)
	c.seam.Once(readSlot, 1, func() {
		go func() {
			c.Resize(MinBytes)
			done <- true
		}()
		if !await.Lock("resize", done) {
			t.Error("Resize was done while All looked at a bucket")
		}
	})
	for range c.All() {
	}
	<-done
	c.check()
}

// TestReaderAgainstFreedIndex: Resize frees buckets and pages only after each reader between R1 and
// R3 has finished.
func TestReaderAgainstFreedIndex(t *testing.T) {
	const made, most, least = 4 << 20, 4 << 20 * resizeShare, 4 << 20 / resizeShare
	for function, size := range map[string]int{"shrinkIndex": 10, "dropPages": 40_900} {
		t.Run(function, func(t *testing.T) {
			c := newShared(t, Options{MaxBytes: made})
			c.Resize(most)
			keys := min(most/4*3/size, 40_000)
			for i := range keys {
				must(0, c.Set(fmt.Append(nil, i), make([]byte, size)))
			}
			done := make(chan bool, 1)
			c.seam.Once(readSlot, 1, func() {
				go func() {
					c.Resize(least)
					done <- true
				}()
				if !await.Lock(function, done) {
					t.Error("memory was freed under a reader")
				}
			})
			c.View(fmt.Append(nil, keys-1), func(Entry) {})
			<-done
			c.check()
		})
	}
}

// TestHitsOfTwoReaders: two reads are two hits, even if one happens between the other's two loads
// of the slot.
func TestHitsOfTwoReaders(t *testing.T) {
	c := newCache(t, Options{})
	key := []byte("k")
	must(0, c.Set(key, key))
	c.seam.Once(readSlot, 1, func() { c.Get(nil, key) })
	c.Get(nil, key)
	if hits := c.found(key).w.hits(); hits != 2 {
		t.Errorf("%d hits, want 2", hits)
	}
}

// TestLateReader: a reader may pin a segment that is being emptied until its slot is cleared. Then
// the segment goes to limbo.
func TestLateReader(t *testing.T) {
	c := newCache(t, Options{})
	key, value := []byte("k"), checked([]byte("k"), 500)
	must(0, c.Set(key, value))
	var r pinned
	first := true
	c.options.OnEvict = func([]byte, Entry, Reason) {
		if first { // another item of the segment is evicted
			first = false
			h := c.seed.Bytes(key)
			r = c.shardOf(h).scan(h, key, false)
		}
	}
	for i := range 2 * MinBytes / 100 {
		must(0, c.Set(fmt.Append(nil, "other ", i), make([]byte, 100)))
	}
	if first || r.it != nil && string(r.it.value()) != string(value) {
		t.Errorf("nothing was evicted, or %q was written over", value)
	}
	c.shards[0].unpin(r)
	c.check()
}

// TestRewriteAgainstReaders: at each step of a rewrite, a reader waits for the new value. If a
// reader has pinned the segment before, it keeps the old value, and the new one goes to another
// place.
func TestRewriteAgainstReaders(t *testing.T) {
	key, value := []byte("k"), checked([]byte("k"), 500)
	again := bytes.Repeat([]byte{'a'}, len(value))
	for point, p := range map[string]seam.Point{"hidden": writeHidden, "alone": writeAlone} {
		t.Run(point, func(t *testing.T) {
			c := newCache(t, Options{})
			must(0, c.Set(key, value))
			var got []byte
			var reader sync.WaitGroup
			c.seam.Once(p, 1, func() {
				tries := make(chan bool)
				c.seam.Hook = func(p seam.Point) {
					if p == readMoves {
						tries <- true
					}
				}
				reader.Go(func() {
					got, _ = c.Get(nil, key)
					close(tries)
				})
				<-tries
				<-tries // it has looked once in vain
				go func() {
					for range tries {
					}
				}()
			})
			must(0, c.Set(key, again))
			reader.Wait()
			if !bytes.Equal(got, again) || c.found(key).it.shape.rewrites() != 1 {
				t.Errorf("the reader has %q", got)
			}
			c.check()
		})
	}
	c := newCache(t, Options{})
	must(0, c.Set(key, value))
	old := c.found(key)
	c.seam.Once(writeHidden, 1, func() {
		n, _ := c.shards[0].segs.split(old.w.place())
		old.pin = c.shards[0].segs.pin(n, 0)
		old.pin.Add(1) // R2 before W2
	})
	must(0, c.Set(key, again))
	if string(old.it.value()) != string(value) {
		t.Errorf("a reader's value has become %q", old.it.value())
	}
	c.shards[0].unpin(old)
	get(t, c, "k", string(again))
	c.seam.Once(writeShown, 1, func() { get(t, c, "k", string(value)) })
	must(0, c.Set(key, value))
	c.check()
}

// TestSearchAgainstMoves: a reader finds a key whose slot moves to the home that was already
// searched.
func TestSearchAgainstMoves(t *testing.T) {
	for n := range 64 {
		c := newCache(t, Options{MaxBytes: 1 << 20})
		s := &c.shards[0]
		key := fmt.Append(nil, "key ", n)
		h := c.seed.Bytes(key)
		must(0, c.Set(key, key))
		one, two := s.index.Homes(tagOf(h))
		if one == two {
			continue
		}
		move := func(from, to *cuckoo.Bucket) { // as displaceFrom does
			s.index.BeginMove()
			moveSlot(h, from, to)
			s.index.EndMove()
		}
		if s.index.Find(tagOf(h), maxPlace, 0) != nil {
			t.Fatal("a slot of no place")
		}
		move(one, two) // it is in the second home now, whichever it was
		c.seam.Once(readFirst, 1, func() { move(two, one) })
		get(t, c, string(key), string(key))
		c.check()
	}
}

// moveSlot moves the slot of a hash to another bucket, which has nothing else at that place.
func moveSlot(h uint64, from, to *cuckoo.Bucket) {
	for j := range from.Slots {
		if w := slot(from.Slots[j].Load()); w != 0 && w.tag() == tagOf(h) {
			to.Slots[j].Store(uint64(w))
			from.Slots[j].Store(0)
		}
	}
}

// TestSearchTakesTheLock: if slots move during each search of a reader, it takes the lock at last.
func TestSearchTakesTheLock(t *testing.T) {
	c := newCache(t, Options{})
	must(0, c.Set([]byte("other"), nil))
	s := &c.shards[0]
	looks, locked := 0, 0
	c.seam.Hook = func(p seam.Point) {
		switch p {
		case readMoves:
			s.index.BeginMove()
			s.index.EndMove()
		case readFirst:
			if looks++; !s.mu.TryLock() {
				locked++
				return
			}
			s.index.BeginMove()
			s.index.EndMove()
			s.mu.Unlock()
		}
	}
	get(t, c, "missing", "")
	if looks < 10 || locked == 0 || locked > 2 { // of both homes
		t.Errorf("%d looks, %d of them with the lock", looks, locked)
	}
}

// TestSearchAgainstGrowth: a reader finds a key that a split moves after the first home was
// searched.
func TestSearchAgainstGrowth(t *testing.T) {
	const keys = 300
	for point, p := range map[string]seam.Point{"moves": readMoves, "first home": readFirst} {
		t.Run(point, func(t *testing.T) {
			c := newCache(t, Options{MaxBytes: 1 << 20})
			s := &c.shards[0]
			for n := range keys {
				must(0, c.Set(fmt.Append(nil, n), []byte("v")))
			}
			for n := range keys {
				c.seam.Once(p, 1, func() {
					s.mu.Lock()
					defer s.mu.Unlock()
					for range 5 {
						if !s.index.Split() && !(s.addChunk() && s.index.Split()) {
							t.Fatal("no memory")
						}
					}
				})
				get(t, c, fmt.Sprint(n), "v")
				c.seam.Hook = nil
			}
			c.check()
			first := uint32(c.segmentBytes) / uint32(unsafe.Sizeof(cuckoo.Bucket{}))
			for before := uint32(0); s.index.Buckets() > first && s.index.Buckets() != before; {
				before = s.index.Buckets() // the same if all are in first homes
				for n := range keys {
					c.seam.Once(p, 1, func() {
						s.mu.Lock()
						defer s.mu.Unlock()
						if s.index.Buckets() > first {
							if len(s.index.Merge()) > 0 {
								t.Error("slots are dropped")
							}
						}
					})
					get(t, c, fmt.Sprint(n), "v")
					c.seam.Hook = nil
				}
			}
			c.check()
		})
	}
}
