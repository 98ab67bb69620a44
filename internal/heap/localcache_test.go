package heap

import (
	"strings"
	"sync"
	"testing"
)

func newLocalCache(h *Heap) *LocalCache {
	o := &LocalCache{}
	o.Init(h)
	return o
}

func TestLocalCacheReturnsItsBlocks(t *testing.T) {
	h := newHeap(t, Options{})
	o := newLocalCache(h)
	var live [][]byte
	for i := range 3000 {
		b, err := o.Alloc(1+i, 8, i%2 == 0)
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 && !allSet(b, 0) {
			t.Fatalf("block of %d bytes is not zero", len(b))
		}
		fill(b, byte(i))
		live = append(live, b)
	}
	for i, b := range live {
		if !allSet(b, byte(i)) {
			t.Fatalf("block %d changed", i)
		}
		if i%3 == 0 {
			h.Free(b) // a cache's block may be freed to the heap ...
		} else {
			o.Free(b)
		}
	}
	b := alloc(t, h, 100)
	o.Free(b) // ... and the heap's to a cache
	o.Close()
	o.Close()
	h.check(t)
	h.Trim()
	if st := h.Stats(); st.Blocks != 0 || st.Active != 0 {
		t.Errorf("after Close and Trim: %+v", st)
	}
}

// Around the end of a magazine a cache needs its central once a batch at most, in Go too.
func TestSpareMagazineSparesTheCentral(t *testing.T) {
	h := newHeap(t, Options{Decay: never})
	o := newLocalCache(h)
	defer o.Close()
	blocks := make([][]byte, 2*classes[classFor(64, 8)].batch) // as many as fit
	take := func(from, to int) {
		for i := range blocks[from:to] {
			blocks[from+i], _ = plain.LocalAlloc(o, 64, 8, false, 0)
		}
	}
	back := func(from, to int) {
		for _, b := range blocks[from:to] {
			plain.localFree(o, b, 0)
		}
	}
	take(0, len(blocks))
	back(0, len(blocks))
	was := h.Stats()
	for n := len(blocks) / 2; n < len(blocks)/2+3; n++ {
		take(0, n)
		back(n-3, n)
		take(n-3, len(blocks))
		back(0, len(blocks))
		if err := o.slot.Entry().verify(); err != nil {
			t.Fatal(err)
		}
	}
	if st := h.Stats(); st.SlowAllocs != was.SlowAllocs || st.SlowFrees != was.SlowFrees {
		t.Errorf("%d allocs and %d frees went to the central", st.SlowAllocs-was.SlowAllocs, st.SlowFrees-was.SlowFrees)
	}
}

func TestLocalCacheMisuse(t *testing.T) {
	h, other := newHeap(t, Options{}), newHeap(t, Options{})
	o := newLocalCache(h)
	b, _ := o.Alloc(64, 8, false)
	foreign := alloc(t, other, 64)
	for _, tt := range []struct {
		name, want string
		do         func()
	}{
		{"cut", "Cache.Free: 0x", func() { o.Free(b[:10]) }},
		{"inside", "it points 8 bytes into", func() { o.Free(b[8:]) }},
		{"of another heap", "another heap", func() { o.Free(foreign) }},
		{"of the Go heap", "not from a freehold heap", func() { o.Free(make([]byte, 64)) }},
		{"negative size", "Cache.Alloc: size -1", func() { o.Alloc(-1, 8, false) }},
		{"alignment", "Cache.Alloc: alignment 3", func() { o.Alloc(8, 3, false) }},
		{"alignment of 0", "alignment 0", func() { o.Alloc(8, 0, false) }},
		{"twice", "freed before", func() { o.Free(b); o.Free(b) }},
	} {
		if got := panicOf(tt.do); !strings.Contains(got, tt.want) {
			t.Errorf("%s: panic %q, want one with %q", tt.name, got, tt.want)
		}
	}
	o.Close()
	for _, do := range []func(){func() { o.Alloc(8, 8, false) }, func() { o.Alloc(1<<20, 8, false) }, func() { o.Free(foreign) }, func() { o.Resize(foreign, 8) }} {
		if got := panicOf(do); !strings.Contains(got, ": the cache of heap") {
			t.Errorf("after Close: panic %q", got)
		}
	}
	other.Free(foreign)
}

// A cache that was closed leaves nothing in the heap.
func TestClosedLocalCacheIsForgotten(t *testing.T) {
	h := newHeap(t, Options{})
	o := newLocalCache(h)
	b, err := o.Alloc(64, 8, false)
	if err != nil {
		t.Fatal(err)
	}
	o.Free(b)
	o.Close()
	if n := h.caches.Joined(); n != 0 {
		t.Errorf("the heap remembers %d caches", n)
	}
	h.check(t)
}

// A heap that is closed takes the memory of its caches away.
func TestLocalCacheOfClosedHeap(t *testing.T) {
	h := newHeap(t, Options{})
	o := newLocalCache(h)
	b, _ := o.Alloc(64, 8, false)
	o.Free(b)
	h.Close()
	for _, do := range []func(){func() { o.Alloc(64, 8, false) }, func() { o.Free(b) }, func() { newLocalCache(h) }} {
		if got := panicOf(do); !strings.Contains(got, "is closed") {
			t.Errorf("panic %q", got)
		}
	}
	o.Close()
}

// Caches of several owners and the heap's own work beside each other.
func TestLocalCachesAtOnce(t *testing.T) {
	h := newHeap(t, Options{})
	passed := make(chan []byte, 100)
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			o := newLocalCache(h)
			defer o.Close()
			for i := range 5000 {
				b, err := o.Alloc(1+i%700, 8, false)
				if err != nil {
					t.Error(err)
					return
				}
				fill(b, byte(n))
				select {
				case passed <- b:
				case other := <-passed:
					if !allSet(other, other[0]) {
						t.Error("a block changed")
					}
					o.Free(other)
					o.Free(b)
				}
			}
		})
	}
	wg.Wait()
	close(passed)
	for b := range passed {
		h.Free(b)
	}
	h.check(t)
	if st := h.Stats(); st.Blocks != 0 {
		t.Errorf("%d blocks are left", st.Blocks)
	}
}
