// Limbo: the statuses of freed spans, until a drain.

package heap

import (
	"fmt"
	"github.com/freehold-go/freehold/internal/pages"
	"strings"
	"testing"
	"unsafe"
)

// goHome is a drain that leaves limbo as it is.
func goHome(h *Heap) {
	h.caches.Drain(nil, func(taken []*cache) {
		for _, c := range taken {
			h.empty(c)
			h.pages.FreeObject(c.addr(), cacheBytes)
		}
	})
	for i := range h.central {
		h.central[i].shrink(h, false)
	}
	h.pages.FreeEmptySlabs()
}

// A block that two goroutines freed at once went home by its first entry, its
// span was freed and its pages are another block's. The second entry is still
// in a cache: allocating it is found, and nobody else is harmed.
func TestSecondEntryOutlivesTheSpan(t *testing.T) {
	for _, size := range []int{8, 64, 1000, 32 << 10} {
		t.Run(fmt.Sprintf("size=%d", size), func(t *testing.T) {
			h := newHeap(t, Options{})
			b := alloc(t, h, size)
			class, e := entryOf(b)
			h.Free(b)
			goHome(h)
			if s := spanAt(e.addr); s != nil && s.Kind == pages.BlockRun {
				t.Fatal("the span is still there")
			}
			o := newProcessor(h) // whose place is known
			defer o.Close()
			h.addCache(o.slot)
			freeAgain(t, h, o, class, e)

			// What has the pages now, and new statuses.
			over := alloc(t, h, 64<<10)
			fill(over, 9)
			var others [][]byte
			for range 300 {
				others = append(others, alloc(t, h, 24), alloc(t, h, 200))
			}
			for _, b := range others {
				fill(b, 7)
			}
			got := panicOf(func() { o.Alloc(size, 1, false) })
			if !strings.Contains(got, "freed by two goroutines at once") {
				t.Errorf("Alloc of the second entry: panic %q", got)
			}
			for range 300 {
				b, err := o.Alloc(size, 1, false)
				if err != nil {
					t.Fatal(err)
				}
				fill(b, 1)
				others = append(others, b)
			}
			if !allSet(over, 9) {
				t.Error("another's block changed")
			}
			for i, b := range others {
				if !allSet(b, b[0]) {
					t.Fatalf("block %d of others changed", i)
				}
				h.Free(b)
			}
			h.Free(over)
		})
	}
}

// What is in limbo is bounded, by a drain that the one who frees makes.
func TestLimboIsBounded(t *testing.T) {
	h := newHeap(t, Options{})
	most := int64(0)
	for range 3 {
		var live [][]byte
		for range 200000 {
			live = append(live, alloc(t, h, 16))
		}
		for _, b := range live {
			h.Free(b)
		}
		most = max(most, h.limbo.bytes.Load())
	}
	if most == 0 || most > minLimbo+int64(classes[classOf[2]].bitsBytes()) {
		t.Errorf("up to %d bytes in limbo", most)
	}
	h.Trim()
	if h.limbo.bytes.Load() != 0 || h.limbo.full.Load() {
		t.Errorf("%d bytes in limbo after Trim", h.limbo.bytes.Load())
	}
}

// The statuses of a freed span stay where they are while an entry may point to
// them: until a drain, and not less.
func TestStatesStayInLimboUntilADrain(t *testing.T) {
	h := newHeap(t, Options{})
	var live [][]byte
	for range 5000 {
		live = append(live, alloc(t, h, 100))
	}
	for _, b := range live {
		h.Free(b)
	}
	_, e := entryOf(live[0])
	goHome(h)
	if h.limbo.bytes.Load() == 0 || *statusAt(e.status) != inLimbo {
		t.Fatalf("%d bytes in limbo, state %#x", h.limbo.bytes.Load(), *statusAt(e.status))
	}
	for range 20000 { // takes whatever metadata is free
		alloc(t, h, 8)
	}
	if *statusAt(e.status) != inLimbo {
		t.Errorf("the state of a freed span's block became %#x", *statusAt(e.status))
	}
	h.Trim()
	if h.limbo.bytes.Load() != 0 {
		t.Errorf("%d bytes in limbo after Trim", h.limbo.bytes.Load())
	}
}

// Where nothing but limbo is left to give back, a drain is worth its cost.
func TestLimboIsWorthADrain(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 1 << 20})
	h.Free(alloc(t, h, 100))
	goHome(h)
	if n := h.count(); n.cached > 0 || h.limbo.bytes.Load() == 0 || n.empty != int(h.limbo.bytes.Load()) {
		t.Fatalf("%d bytes in limbo: %+v", h.limbo.bytes.Load(), n)
	}
	if !h.worthADrain() {
		t.Error("a refused request would not drain the heap")
	}
}

// A block whose span is being freed is not live, whatever length it is freed with.
func TestBlockInLimboIsNotLive(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 100)
	s := spanAt(addrOf(b))
	status := s.statusOf(s.index(addrOf(b)))
	*statusAt(status) = inLimbo
	for name, misuse := range map[string]func(){
		"Free":             func() { h.Free(b) },
		"Free of no bytes": func() { h.Free(b[:0]) },
		"FreePointer":      func() { h.FreePointer(unsafe.Pointer(&b[0])) },
		"Resize":           func() { h.Resize(b, 90) },
	} {
		if panicOf(misuse) == "" {
			t.Errorf("%s: no panic", name)
		}
	}
	*statusAt(status) = 100
	h.Free(b)
}

// Limbo of up to minLimbo bytes is never full.
func TestSmallLimboIsNotFull(t *testing.T) {
	h := newHeap(t, Options{})
	h.noteLimbo(minLimbo)
	if h.limbo.full.Load() {
		t.Error("full at minLimbo")
	}
	h.noteLimbo(1)
	if !h.limbo.full.Load() {
		t.Error("not full above minLimbo")
	}
	h.noteLimbo(-minLimbo - 1)
}
