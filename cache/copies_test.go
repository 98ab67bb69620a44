package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/internal/poison"
)

// showing has each call that shows the value of key "k" to f, and the name in panics.
var showing = map[string]func(c *Of[string, string], f func(b []byte)){
	"cache.Cache.View": func(c *Of[string, string], f func(b []byte)) {
		c.Cache.View([]byte("k"), func(e Entry) { f(e.Value) })
	},
	"cache.Cache.Peek": func(c *Of[string, string], f func(b []byte)) {
		c.Cache.Peek([]byte("k"), func(e Entry) { f(e.Value) })
	},
	"cache.Cache.GetMany": func(c *Of[string, string], f func(b []byte)) {
		c.Cache.GetMany([][]byte{[]byte("k")}, func(_ int, e Entry) { f(e.Value) })
	},
	"cache.Cache.Update": func(c *Of[string, string], f func(b []byte)) {
		c.Cache.Update([]byte("k"), func(e *Entry, _ bool) Change { f(e.Value); return Store })
	},
	"cache.Codec.Decode": func(c *Of[string, string], f func(b []byte)) {
		c.values.Decode = func(b []byte) (string, error) { f(b); return "", nil }
		c.Get("k")
	},
	"cache.Codec.Decode of GetOrLoad": func(c *Of[string, string], f func(b []byte)) {
		c.values.Decode = func(b []byte) (string, error) { f(b); return "", nil }
		c.GetOrLoad(context.Background(), "k", nil)
	},
	"cache.Options.OnEvict": func(c *Of[string, string], f func(b []byte)) {
		c.options.OnEvict = func(_ []byte, e Entry, _ Reason) { f(e.Value) }
		c.Cache.SetTTL([]byte("k"), []byte("value"), 1)
		c.shards[0].mu.Lock()
		defer c.shards[0].mu.Unlock()
		c.shards[0].drop(c.shards[0].scan(c.seed.Bytes([]byte("k")), []byte("k"), true).at, Room)
	},
	"cache.Options.Expiry of Get": func(c *Of[string, string], f func(b []byte)) {
		expireBy(c, f)
		c.Cache.Get(nil, []byte("k"))
	},
	"cache.Options.Expiry of GetOrLoad": func(c *Of[string, string], f func(b []byte)) {
		expireBy(c, f)
		c.GetOrLoad(context.Background(), "k", nil)
	},
	"cache.Options.Expiry of Set": func(c *Of[string, string], f func(b []byte)) {
		expireBy(c, f)
		c.Cache.Set([]byte("k"), []byte("value"))
	},
}

// expireBy makes "k" an entry that expires, and f a part of Options.Expiry.
func expireBy(c *Of[string, string], f func(b []byte)) {
	c.Cache.SetTTL([]byte("k"), []byte("value"), time.Hour)
	c.readsSetTTL = true
	c.options.Expiry = func(_ []byte, e Entry, _ bool) time.Duration { f(e.Value); return e.TTL }
}

// TestCopies: with a parent that checks its blocks, a function gets a copy of the value, which is
// freed after the call. A write to it panics.
func TestCopies(t *testing.T) {
	for call, show := range showing {
		c := newOf(t, &OfOptions[string, string]{})
		must(0, c.Set("k", "value"))
		var kept []byte
		show(c, func(b []byte) {
			if string(b) != "value" {
				t.Errorf("%s: %q", call, b)
			}
			kept = b
		})
		if !bytes.Equal(kept, bytes.Repeat([]byte{poison.Fill}, len("value"))) {
			t.Errorf("%s: the value that was kept is %q", call, kept)
		}
		must(0, c.Set("k", "value"))
		name, _, _ := bytes.Cut([]byte(call), []byte(" of "))
		panics.Want(t, "freehold: "+string(name)+": the function has written to byte 2 of 5, which is the cache's memory", func() { show(c, func(b []byte) { b[2]++ }) })
		panics.Want(t, "mine", func() { show(c, func(b []byte) { panic("mine") }) })
	}
}

// TestCopyForUpdate: f may store any part of the value that it gets.
func TestCopyForUpdate(t *testing.T) {
	c := newCache(t, Options{})
	for i, part := range []func(b []byte) []byte{
		func(b []byte) []byte { return b },
		func(b []byte) []byte { return b[2:4] },
		func(b []byte) []byte { return b[5:] },
		func(b []byte) []byte { return append(b, "more"...) },
		func([]byte) []byte { return []byte("other") },
	} {
		must(0, c.Set([]byte("k"), []byte("value")))
		must(c.Update([]byte("k"), func(e *Entry, _ bool) Change { e.Value = part(e.Value); return Store }))
		if got, _ := c.Get(nil, []byte("k")); string(got) != string(part([]byte("value"))) {
			t.Errorf("part %d is stored as %q", i, got)
		}
	}
}

// TestCopiesForAll: the loop's body may write to key and value, with and without a checking parent.
func TestCopiesForAll(t *testing.T) {
	for _, parent := range []freehold.Allocator{nil, newHeap(t)} {
		c := newCache(t, Options{})
		if parent != nil {
			c = New(parent, &Options{MaxBytes: MinBytes})
			defer c.Close()
		}
		want := map[string]string{}
		for i := range 100 {
			k, v := fmt.Sprint("key ", i), fmt.Sprint("value ", i)
			want[k] = v
			must(0, c.Set([]byte(k), []byte(v)))
		}
		for round := range 2 {
			got := 0
			for k, e := range c.All() {
				if want[string(k)] != string(e.Value) {
					t.Errorf("round %d: %q has %q", round, k, e.Value)
				}
				k, e.Value = append(k, "more"...), append(e.Value, "more"...)
				clear(k)
				clear(e.Value)
				got++
			}
			if got != len(want) {
				t.Errorf("%d of %d", got, len(want))
			}
		}
	}
}

// TestNoMemoryForCopy: a function gets the value in place if there is no memory for a copy.
func TestNoMemoryForCopy(t *testing.T) {
	c := newCache(t, Options{})
	must(0, c.Set([]byte("k"), []byte("value")))
	c.copier.memory = freehold.NewLimit(c.base.Parent, 1)
	c.View([]byte("k"), func(e Entry) {
		if string(e.Value) != "value" {
			t.Errorf("%q", e.Value)
		}
	})
	if _, err := c.copier.memory.Alloc(5, 1); !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Error("there was memory")
	}
}
