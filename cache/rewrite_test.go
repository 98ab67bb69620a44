package cache

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"time"
	"unsafe"
)

// found returns the item of key, as a writer finds it.
func (c *Cache) found(key []byte) pinned {
	h := c.seed.Bytes(key)
	return c.shardOf(h).scan(h, key, true)
}

// TestRewrite: an entry is rewritten in place if the new one is nearly as large, whatever its TTL
// is.
func TestRewrite(t *testing.T) {
	key := []byte("key")
	entry := func(n int, flags uint64, ttl time.Duration) Entry {
		return Entry{Value: bytes.Repeat([]byte{byte(n)}, n), Flags: flags, TTL: ttl}
	}
	tests := []struct {
		name      string
		old, next Entry
		want      bool
	}{
		{"the same size", entry(101, 0, 0), entry(101, 0, 0), true},
		{"into the last bytes", entry(101, 0, 0), entry(97, 0, 0), true}, // 3+97 is a multiple of 4
		{"an eighth less", entry(1000, 0, 0), entry(877, 0, 0), true},
		{"less than that", entry(1000, 0, 0), entry(873, 0, 0), true},
		{"in a segment of its own", entry(20_000, 0, 0), entry(20_000, 0, 0), false},
		{"beyond 31 slack units", entry(2000, 0, 0), entry(1873, 0, 0), true},
		{"a byte", entry(2000, 0, 0), entry(1, 0, 0), true},
		{"a byte more", entry(101, 0, 0), entry(102, 0, 0), false},
		{"other flags", entry(101, 7, 0), entry(101, 8, 0), true},
		{"no flags", entry(101, 7, 0), entry(101, 0, 0), false},
		{"larger flags", entry(101, 7, 0), entry(101, 1<<40, 0), false},
		{"another TTL", entry(101, 0, 20*time.Second), entry(101, 0, 30*time.Second), true},
		{"a TTL of another class", entry(101, 0, 20*time.Second), entry(101, 0, time.Hour), true},
		{"for ever", entry(101, 0, 20*time.Second), entry(101, 0, 0), true},
		{"no longer for ever", entry(101, 0, 0), entry(101, 0, 20*time.Second), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCache(t, Options{MaxBytes: 8 << 20})
			c.fake()
			must(c.Put(key, tt.old))
			must(c.Put(key, tt.next))
			c.check()
			if got := c.found(key).it.shape.rewrites() == 1; got != tt.want {
				t.Errorf("it stays: %t, want %t", got, tt.want)
			}
			c.View(key, func(e Entry) {
				ttl := tt.next.TTL
				if !bytes.Equal(e.Value, tt.next.Value) || e.Flags != tt.next.Flags || e.TTL < ttl || e.TTL > ttl+2*time.Second {
					t.Errorf("%d bytes, flags %x, TTL %v", len(e.Value), e.Flags, e.TTL)
				}
			})
		})
	}
}

// TestRewriteVersions: each rewrite gives a new version. After maxRewrites the entry moves.
func TestRewriteVersions(t *testing.T) {
	c := newCache(t, Options{})
	seen := map[uint64]bool{}
	places := map[place]bool{}
	const states = maxRewrites + 1 // at one place
	for i := range 3*states + 1 {
		seen[must(c.Put([]byte("k"), Entry{Value: fmt.Append(nil, 1000+i)}))] = true
		places[c.found([]byte("k")).w.place()] = true
	}
	if len(seen) != 3*states+1 || len(places) != 4 {
		t.Errorf("%d versions at %d places", len(seen), len(places))
	}
}

// TestRewriteIsAHit: each rewrite counts as a hit.
func TestRewriteIsAHit(t *testing.T) {
	c := newCache(t, Options{})
	for hits := range maxHits + 2 {
		must(0, c.Set([]byte("k"), []byte("v")))
		if got := c.found([]byte("k")).w.hits(); got != min(hits, maxHits) {
			t.Errorf("%d hits after %d rewrites", got, hits)
		}
	}
}

// TestRewriteItself: Update may store a part of the value that f gets.
func TestRewriteItself(t *testing.T) {
	c := newCache(t, Options{})
	must(0, c.Set([]byte("k"), []byte("0123456789abcdefghijklmnopqrstuvwxyz")))
	at := c.found([]byte("k")).w.place()
	must(c.Update([]byte("k"), func(e *Entry, _ bool) Change {
		e.Value = e.Value[2:]
		return Store
	}))
	get(t, c, "k", "23456789abcdefghijklmnopqrstuvwxyz")
	if c.found([]byte("k")).w.place() != at {
		t.Error("it was moved")
	}
}

// TestRewriteLeavesNothing: rewrites make no dead bytes, evict nothing and copy nothing.
func TestRewriteLeavesNothing(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 1 << 20})
	const n = 800
	for round := range 10 {
		for i := range n {
			must(0, c.Set(fmt.Append(nil, 1000+i), make([]byte, 1000-6*round)))
		}
		if st := c.Stats(); st.Len != n || st.Dead > 0 || st.Copied > 0 {
			t.Errorf("round %d: %+v", round, st)
		}
	}
}

// TestSlackIsGarbage: entries that shrink in place leave memory for others, and a sweep gives most of
// it back.
func TestSlackIsGarbage(t *testing.T) {
	const n = 800
	fill := func(c *Cache, from, to, size int) {
		for i := from; i < to; i++ {
			must(0, c.Set(fmt.Append(nil, 1000+i), bytes.Repeat([]byte{byte(i)}, size)))
		}
		c.check()
	}
	c := newCache(t, Options{MaxBytes: 1 << 20})
	c.fake()
	fill(c, 0, n, 1000)
	fill(c, 0, n, 100)
	if st := c.Stats(); st.Len != n || st.Copied > 0 || st.Dead < n*800 {
		t.Errorf("after %d entries have shrunk in place: %+v", n, st)
	}
	fill(c, n, 5*n, 100)
	if st := c.Stats(); st.Len != 5*n || st.Evicted > 0 {
		t.Errorf("after %d small entries more: %+v", 4*n, st)
	}
	for i := range 5 * n {
		get(t, c, fmt.Sprint(1000+i), string(bytes.Repeat([]byte{byte(i)}, 100)))
	}
	fill(c, 0, 5*n, 1)
	if !c.shards[0].woken {
		t.Error("no sweep is to come")
	}
	before := c.Stats().Reserved
	for range 100 {
		c.sweep()
	}
	if st := c.Stats(); st.Len != 5*n || st.Reserved > before*2/3 {
		t.Errorf("%d bytes are reserved, %d before the sweeps: %+v", st.Reserved, before, st)
	}
	c.check()
}

// TestCopyOfARewrittenItem: copyTo copies the whole entry, without slack bytes and rewrites.
func TestCopyOfARewrittenItem(t *testing.T) {
	key := []byte("key")
	for _, flags := range []uint64{0, 7, 1<<32 - 1, 1 << 32} {
		for _, access := range []bool{false, true} {
			c := newCache(t, Options{Access: access})
			c.fake().now = time.Hour
			e := Entry{Flags: flags, TTL: 20 * time.Second, Read: access, Idle: 5 * time.Second}
			for _, n := range []int{100, 91} {
				e.Value = bytes.Repeat([]byte{byte(n)}, n)
				must(c.Put(key, e))
			}
			r := c.found(key)
			want := c.shards[0].entryOf(r, c.accessTime())
			slack := r.it.slackBytes()
			to := (*item)(unsafe.Pointer(new([32]uint64)))
			r.it.copyTo(to, 0)
			if slack != 8 || to.size() != r.it.size()-slack || to.shape.rewrites() != 0 || string(to.key()) != "key" {
				t.Errorf("%d bytes, %d of them slack, are copied to %d; %d rewrites", r.it.size(), slack, to.size(), to.shape.rewrites())
			}
			r.it = to
			got := c.shards[0].entryOf(r, c.accessTime())
			got.Version = want.Version
			if !reflect.DeepEqual(got, want) || got.Flags != flags || got.Read != access || access && got.Idle != e.Idle {
				t.Errorf("%+v is copied to %+v", want, got)
			}
		}
	}
}
