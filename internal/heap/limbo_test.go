// Limbo: the statuses of freed spans, and blocks that were freed twice.

package heap

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/small"
)

// fillLimbo leaves statuses in limbo, and p without a cache.
func fillLimbo(t *testing.T, p *processor) {
	t.Helper()
	p.Free(allocOn(t, p, 1000, 1, false))
	p.Close()
	for range 2 { // the class comes to rest
		p.h.pages.Scavenging.Lock()
		p.h.small.Tick()
		p.h.pages.Scavenging.Unlock()
	}
	if p.h.small.LimboBytes() == 0 {
		t.Fatal("nothing is in limbo")
	}
}

// A relief that asks leaves limbo alone, because other caches may have entries.
func TestAskLeavesLimbo(t *testing.T) {
	h := newHeap(t, Options{})
	all := newProcessors(h, 2)
	fillLimbo(t, all[0])
	allocOn(t, all[1], 64, 1, false) // a cache
	before := h.small.LimboBytes()
	all[0].slow(func() {
		if !h.caches.ask() || h.small.LimboBytes() < before {
			t.Errorf("%d bytes of %d are left in limbo", h.small.LimboBytes(), before)
		}
	})
	all[1].Close()
}

// Limbo is bounded by a drain of the goroutine that frees.
func TestLimboIsBounded(t *testing.T) {
	h := newHeap(t, Options{})
	most := 0
	for range 3 {
		var live [][]byte
		for range 200000 {
			live = append(live, alloc(t, h, 16))
		}
		for _, b := range live {
			h.Free(b)
		}
		most = max(most, h.small.LimboBytes())
	}
	const full, ofSpan = 256 << 10, 4 << 10
	if most == 0 || most > full+ofSpan {
		t.Errorf("up to %d bytes in limbo", most)
	}
	h.Trim()
	if h.small.LimboBytes() != 0 || h.small.DrainIsDue() {
		t.Errorf("%d bytes in limbo after Trim", h.small.LimboBytes())
	}
}

// A Free that finds a drain due does not drain a heap that another goroutine has drained or closed
// since.
func TestLimboIsDrainedOnce(t *testing.T) {
	for name, end := range map[string]func(h *Heap){"Trim": (*Heap).Trim, "Close": (*Heap).Close} {
		h := newHeap(t, Options{})
		var live [][]byte
		for range 200000 {
			live = append(live, alloc(t, h, 16))
		}
		h.pages.Scavenging.Lock() // so no Free drains
		for _, b := range live {
			h.Free(b)
		}
		h.pages.Scavenging.Unlock()
		if !h.small.DrainIsDue() {
			t.Fatal("no drain is due")
		}
		end(h)
		restore := pin.OnWait(func(*pin.Holders) { t.Errorf("drained after %s", name) })
		h.drainLimbo()
		restore()
	}
}

// A drain is worth its cost if it frees nothing but limbo.
func TestLimboIsWorthADrain(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 1 << 20})
	fillLimbo(t, newProcessor(h))
	if n := h.count(); n.cached > 0 || n.emptySpans != h.small.LimboBytes() {
		t.Fatalf("%d bytes in limbo: %+v", h.small.LimboBytes(), n)
	}
	if !h.worthADrain() {
		t.Error("a refused request would not drain the heap")
	}
}

// A block whose span is being freed is not live, whatever length it is freed with.
func TestBlockInLimboIsNotLive(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 100)
	status := small.SpanAt(small.AddrOf(b)).Status(small.AddrOf(b))
	*status = small.InLimbo
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
	*status = 100
	h.Free(b)
}

// Two goroutines that free a block at the same moment may both get past the check. The Alloc that
// comes upon the second entry panics, in the fast path and in slow ones.
func TestBlockFreedTwiceAtOnceIsNamed(t *testing.T) {
	for _, call := range []string{"Heap.Alloc", "Heap.Zeroed"} {
		h := newHeap(t, Options{})
		p := newProcessor(h)
		keep, b := allocOn(t, p, 64, 1, false), allocOn(t, p, 64, 1, false)
		e := h.small.LiveEntry(small.ClassFor(64, 1), b)
		p.Free(b)
		if !p.cache().Free(small.ClassFor(64, 1), e) {
			t.Fatal("there is no room for a second entry")
		}
		first := allocOn(t, p, 64, 1, false)
		got := panicOf(func() {
			for range 2 * batch {
				p.Alloc(64, 1, call == "Heap.Zeroed")
			}
		})
		if !strings.HasPrefix(got, "freehold: "+call+": the block at ") || !strings.Contains(got, "freed by two goroutines at once") {
			t.Errorf("%s: panic %q", call, got)
		}
		h.Free(first)
		h.Free(keep)
	}
}
