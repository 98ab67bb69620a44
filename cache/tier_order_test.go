//go:build freehold_seams && freehold_portable && !race

package cache

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/freehold-go/freehold/internal/disk"
	"github.com/freehold-go/freehold/internal/seam"
)

// fill appends n records of other keys. lap appends such records until the next one gets the place
// at.
func (c *Cache) fill(keyBytes, valueBytes, n int) (last disk.Place) {
	r := disk.Record{Key: make([]byte, keyBytes), Value: make([]byte, valueBytes)}
	for n > 0 {
		if at, ok := c.disk.Append(&r); ok {
			last = at
			n--
		}
		c.awaitWriter()
	}
	return last
}

func (c *Cache) lap(at disk.Place, keyBytes, n int) {
	size := disk.Place(disk.Size(keyBytes, n) / disk.UnitBytes)
	for c.fill(keyBytes, n, 1)+size != at {
	}
}

// TestReadOfDiskAgainstWriters: at each step of a read of the disk, another call changes the entry.
// The read returns the entry from before or after the change. The tiers have the entry from after it.
func TestReadOfDiskAgainstWriters(t *testing.T) {
	key, value := []byte("key"), bytes.Repeat([]byte("value "), 500)
	again := bytes.Repeat([]byte("again "), 500)
	old, next := string(value), string(again)
	place := func(c *Cache) disk.Place {
		words, _ := c.shards[0].tier.slots(c.seed.Bytes(key))
		return words[0].place()
	}
	for name, write := range map[string]struct {
		do    func(c *Cache)
		after string
	}{
		"set":          {func(c *Cache) { must(0, c.Set(key, again)) }, next},
		"set, evicted": {func(c *Cache) { must(0, c.Set(key, again)); c.toDisk() }, next},
		"deleted":      {func(c *Cache) { c.Delete(key) }, ""},
		"cleared":      {func(c *Cache) { c.Clear() }, ""},
		"promoted":     {func(c *Cache) { c.Get(nil, key) }, old},
		"promoted, moved": {func(c *Cache) {
			c.Get(nil, key)
			c.shards[0].tier.forget(c.seed.Bytes(key))
		}, old},
		"promoted, evicted": {func(c *Cache) { c.Get(nil, key); c.toDisk() }, old},
		"overwritten": {func(c *Cache) {
			c.lap(place(c), len(key), len(value))
		}, ""},
		"the same place": {func(c *Cache) {
			at := place(c)
			c.Delete(key)
			c.lap(at, len(key), len(value))
			must(0, c.Set(key, again))
			c.toDisk()
			if place(c) != at {
				t.Errorf("it is at %d, want %d", place(c), at)
			}
		}, next},
		"written again": {func(c *Cache) {
			c.Get(nil, key)
			c.toDisk()
			for at := place(c); place(c) == at; {
				c.lap(at, len(key), len(value))
			}
		}, old},
	} {
		for point, p := range map[string]seam.Point{"search": diskSearch, "slot": diskSlotSeen, "read": diskRead} {
			for call, read := range map[string]func(c *Cache) (got string){
				"Get":  func(c *Cache) string { b, _ := c.Get(nil, key); return string(b) },
				"Peek": func(c *Cache) (got string) { c.Peek(key, func(e Entry) { got = string(e.Value) }); return got },
				"GetOrLoad": func(c *Cache) string {
					b, _ := c.GetOrLoad(context.Background(), nil, key, func(context.Context) (Entry, error) { return Entry{}, ErrNotFound })
					return string(b)
				},
				"Update": func(c *Cache) (got string) {
					must(c.Update(key, func(e *Entry, _ bool) Change { got = string(e.Value); return Keep }))
					return got
				},
				"Touch": func(c *Cache) string {
					if c.Touch(key, 0) {
						return write.after
					}
					return ""
				},
				"Delete": func(c *Cache) string {
					if c.Delete(key) {
						return write.after
					}
					return ""
				},
			} {
				if p == diskSearch && (call == "Update" || call == "Touch" || call == "Delete") {
					continue // they search under the lock
				}
				t.Run(fmt.Sprint(name, " after ", point, " of ", call), func(t *testing.T) {
					c := onDisk(t, Options{})
					c.fill(len(key), len(value), 2) // so that another record precedes it in its region
					must(0, c.Set(key, value))
					c.toDisk()
					came := false
					c.seam.Once(p, 1, func() { came = true; write.do(c) })
					got := read(c)
					if !came || got != write.after {
						t.Errorf("the writer came: %t; %s has %.10q, want %.10q", came, call, got, write.after)
					}
					want := write.after
					if call == "Delete" {
						want = ""
					}
					get(t, c, string(key), want)
					c.toDisk()
					get(t, c, string(key), want)
					c.check()
				})
			}
		}
	}
}

// TestGetContextLeaves: a call whose ctx is done returns while its read of the disk goes on. Close
// waits for the read, which leaves nothing pinned.
func TestGetContextLeaves(t *testing.T) {
	c := onDisk(t, Options{})
	key := []byte("key")
	must(0, c.Set(key, []byte("value")))
	c.toDisk()
	ctx, cancel := context.WithCancel(t.Context())
	answers := make(chan struct{})
	c.seam.Once(diskRead, 1, func() { cancel(); <-answers })
	if got, ok, err := c.GetContext(ctx, nil, key); ok || len(got) > 0 || err != context.Canceled {
		t.Errorf("%q, %t, %v", got, ok, err)
	}
	key[0] = 'x' // the caller uses it again
	close(answers)
	c.refreshes.wait()
	if !c.isInMemory("key") {
		t.Error("the read brings another key to memory")
	}
	get(t, c, "key", "value")
	c.check()
	c.Close()
}

// TestMissAgainstPromotion: a reader that has searched the memory before an entry comes there, and
// searches the disk after it is forgotten there, searches again.
func TestMissAgainstPromotion(t *testing.T) {
	c := onDisk(t, Options{Access: true}) // a promoted entry is forgotten on disk
	key := []byte("key")
	must(0, c.Set(key, []byte("value")))
	c.toDisk()
	c.seam.Once(diskSearch, 1, func() { get(t, c, "key", "value") })
	get(t, c, "key", "value")
	c.toDisk()
	c.seam.Once(diskSearch, 1, func() {
		get(t, c, "key", "value")
		c.toDisk()
	})
	get(t, c, "key", "value")
	c.check()
}

// TestFetchAgainstMoves: fetch finds a key whose slot, in memory or on disk, moves to the home that
// was already searched, also if the move has begun before and goes on.
func TestFetchAgainstMoves(t *testing.T) {
	for n := range 16 {
		c := onDisk(t, Options{})
		key := fmt.Append(nil, "key ", n)
		h := c.seed.Bytes(key)
		s := c.shardOf(h)
		must(0, c.Set(key, key))
		ix, nth := &s.index, 1
		if n >= 8 {
			c.toDisk()
			ix, nth = s.tier.part(h), 2 // after the search of memory
		}
		one, two := ix.Homes(tagOf(h))
		if one == two {
			continue
		}
		moveSlot(h, one, two)
		goesOn := n%2 == 1
		if goesOn {
			ix.BeginMove()
		}
		c.seam.Once(readFirst, nth, func() {
			if !goesOn {
				ix.BeginMove()
				defer ix.EndMove()
			}
			moveSlot(h, two, one)
		})
		r := s.fetch(h, key, true)
		if goesOn {
			ix.EndMove()
		}
		if r.it == nil {
			t.Fatalf("%s is missed", key)
		}
		s.unpin(r)
		c.check()
	}
}
