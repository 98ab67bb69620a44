package cache

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// A hoard is a cache with kept entries "0", "1" and so on, of one size.
type hoard struct {
	t    *testing.T
	c    *Cache
	size int
}

func newHoard(t *testing.T, size int, o Options) *hoard {
	o.OnEvict = func(key []byte, e Entry, why Reason) {
		if e.Kept && why == Room {
			t.Fatalf("%s of %d bytes is evicted", key, len(e.Value))
		}
	}
	c := New(alloctest.New(t), &o)
	t.Cleanup(c.Close)
	return &hoard{t, c, size}
}

func (h *hoard) value(i int) []byte { return bytes.Repeat([]byte{byte(i)}, h.size) }

// fill adds kept entries from number n on until there is no room, and returns the next number.
func (h *hoard) fill(n int, ttl time.Duration) int {
	for ; ; n++ {
		_, err := h.c.Put(fmt.Append(nil, n), Entry{Value: h.value(n), TTL: ttl, Kept: true})
		if err != nil {
			if !errors.Is(err, freehold.ErrOutOfMemory) {
				h.t.Fatal(err)
			}
			h.c.check()
			return n
		}
	}
}

// want demands that entries from to n-1 are there.
func (h *hoard) want(from, n int) {
	h.t.Helper()
	for i := from; i < n; i++ {
		if v, ok := h.c.Get(nil, fmt.Append(nil, i)); !ok || !bytes.Equal(v, h.value(i)) {
			h.t.Fatalf("%d of %d: %t, %d bytes", i, n, ok, len(v))
		}
	}
}

// TestKeepAll: a cache that keeps all fails when it is full, without losing an entry. Deleted and
// expired entries make room again.
func TestKeepAll(t *testing.T) {
	for _, bound := range []int{MinBytes, 16 << 20} {
		for _, size := range []int{100, 1000, 5_000, 30_000} {
			t.Run(fmt.Sprint(bound, " ", size), func(t *testing.T) {
				h := newHoard(t, size, Options{MaxBytes: bound, KeepAll: true})
				clock := h.c.fake()
				first := h.fill(0, 0)
				h.want(0, first)
				for i := 0; i < first; i += 2 {
					h.c.Delete(fmt.Append(nil, i))
				}
				second := h.fill(first, time.Minute)
				h.want(first, second)
				for i := 1; i < first; i += 2 {
					h.want(i, i+1)
				}
				clock.now += time.Hour
				third := h.fill(second, 0)
				h.want(second, third)
				if st := h.c.Stats(); st.Evicted+st.Shrunk > 0 || st.Reserved > st.MaxBytes {
					t.Errorf("%+v", st)
				}
				share := float64(first*size) / float64(bound)
				t.Logf("%.2f of the bound; after %d entries %d and %d more", share, first, second-first, third-second)
				if half := first / 2; bound > MinBytes && size < 30_000 && (share < .6 || second-first < half*6/10 || third-second < half*6/10) {
					t.Error("too few")
				}
			})
		}
	}
}

// TestKept: kept entries stay while others come and go. They stay kept when they are read, marked,
// touched, copied and restored, and not when another entry replaces them.
func TestKept(t *testing.T) {
	h := newHoard(t, 100, Options{MaxBytes: 1 << 20})
	const n = 1000
	for i := range n {
		must(h.c.Put(fmt.Append(nil, i), Entry{Value: h.value(i), Kept: true}))
	}
	flood := func(c *Cache) {
		for i := range 50_000 {
			must(0, c.Set(fmt.Append(nil, "flood ", i), h.value(i)))
		}
		c.check()
	}
	flood(h.c)
	h.want(0, n)
	key := func(i int) []byte { return fmt.Append(nil, i) }
	kept := func(i int) (kept bool) {
		h.c.Peek(key(i), func(e Entry) { kept = e.Kept })
		return kept
	}
	h.c.Touch(key(1), time.Hour)
	must(h.c.Update(key(2), func(e *Entry, _ bool) Change { e.Flags = 1 << 40; return Mark }))
	must(h.c.Update(key(3), func(e *Entry, _ bool) Change { e.Value = h.value(3); return Store }))
	var copied Entry
	h.c.Peek(key(4), func(e Entry) { copied = e; copied.Value = h.value(4) })
	must(h.c.Put(key(4), copied))
	must(0, h.c.Set(key(5), h.value(5)))
	for i := 1; i <= 5; i++ {
		if kept(i) != (i < 5) {
			t.Errorf("%d is kept: %t", i, kept(i))
		}
	}
	var stream bytes.Buffer
	must(0, h.c.Snapshot(&stream))
	whole := stream.Bytes()
	h.c.Clear()
	must(0, h.c.Restore(bytes.NewReader(whole)))
	flood(h.c)
	h.want(6, n)
	if kept(5) {
		t.Error("an entry that is not kept outlives a flood")
	}
	// In a smaller cache some find no room, and no others are lost for them.
	small := newHoard(t, 100, Options{MaxBytes: MinBytes, KeepAll: true})
	must(0, small.c.Restore(bytes.NewReader(whole)))
	if small.c.check(); small.c.Len() < n/2 {
		t.Errorf("%d entries are restored", small.c.Len())
	}
}

// TestKeptInTheWay: if kept entries leave no room, other calls fail. Once they are deleted, or the
// cache is resized, there is room again.
func TestKeptInTheWay(t *testing.T) {
	for _, bound := range []int{MinBytes, 16 << 20} {
		h := newHoard(t, 1000, Options{MaxBytes: bound})
		n := h.fill(0, 0)
		for i := range 100 {
			h.c.Set(fmt.Append(nil, "other ", i), h.value(i))
		}
		h.c.check()
		h.want(0, n)
		h.c.Resize(bound * 2)
		must(0, h.c.Set([]byte("other"), h.value(1)))
		h.c.Resize(max(bound/2, MinBytes))
		if h.c.check(); h.c.Stats().Reserved > h.c.Stats().MaxBytes || h.c.Len() == 0 {
			t.Errorf("%+v", h.c.Stats())
		}
		for i := range n {
			h.c.Delete(fmt.Append(nil, i))
		}
		for i := range n / 4 {
			must(0, h.c.Set(fmt.Append(nil, "other ", i), h.value(i)))
		}
		h.c.check()
	}
}

// TestKeptGarbageWithoutRoom: if the segment with most garbage has kept items and there is no memory
// for their copies, another segment makes room.
func TestKeptGarbageWithoutRoom(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 1 << 20})
	s := &c.shards[0]
	const kept = 2000
	for i := 0; i < kept || s.available() > s.reserve()+s.begun; i++ {
		must(c.Put(fmt.Append(nil, i), Entry{Value: make([]byte, 100), Kept: i < kept}))
	}
	for i := range kept {
		if i%4 != 0 {
			c.Delete(fmt.Append(nil, i))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sealAll(true)
	s.limit -= s.available() - c.segmentBytes*3/4
	if g := s.segs.at(s.victims().dirtiest); !g.isKept() {
		t.Fatal("the segment with most garbage has no kept items")
	}
	if !s.makeRoom(c.segmentBytes) {
		t.Error("no room")
	}
}

// TestKeptLeaveTheReserve: kept entries are refused before they take the memory for copies.
func TestKeptLeaveTheReserve(t *testing.T) {
	c := newCache(t, Options{KeepAll: true})
	s := &c.shards[0]
	for i := 0; c.Set(fmt.Append(nil, i), make([]byte, 1000)) == nil; i++ {
	}
	if s.available() < s.reserve() {
		t.Errorf("%d bytes are available of a reserve of %d", s.available(), s.reserve())
	}
}
