package arena

import (
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/panics"
)

// check verifies the invariants of Arena and its chunks.
func (a *Arena) check(t testing.TB) {
	t.Helper()
	base := uintptr(a.base)
	reserved := 0
	for i, c := range a.chunks {
		reserved += len(c.mem)
		r := regionOf(c.mem)
		if j, ok := a.search(r.from); !ok || a.regions[j] != r {
			t.Fatalf("chunk %d is no region", i)
		}
		dirtyTo := c.dirtyTo
		if i == a.current {
			if r.from != base || r.to != a.end {
				t.Fatalf("the current chunk is %#x to %#x, not %#x to %#x", r.from, r.to, base, a.end)
			}
			dirtyTo = max(a.top, a.dirtyTo)
			for j, c := range c.mem[a.top-base : max(a.top, a.zeroTo)-base] {
				if c != 0 {
					t.Fatalf("free byte %d, below zeroTo, is %#x", j, c)
				}
			}
		}
		if !a.checked {
			for j, c := range c.mem[dirtyTo-r.from:] {
				if c != 0 {
					t.Fatalf("byte %d beyond dirtyTo is %#x", j, c)
				}
			}
		}
	}
	filled := a.usedBytes()
	switch {
	case len(a.regions) != len(a.chunks):
		t.Fatalf("%d regions of %d chunks", len(a.regions), len(a.chunks))
	case reserved != a.reserved:
		t.Fatalf("%d bytes reserved, counted %d", reserved, a.reserved)
	case a.options.MaxBytes > 0 && reserved > a.options.MaxBytes:
		t.Fatalf("%d bytes reserved with a limit of %d", reserved, a.options.MaxBytes)
	case (a.current < 0) != (a.used == 0) || a.current >= a.used || a.used > len(a.chunks):
		t.Fatalf("chunk %d of %d in use of %d is the current one", a.current, a.used, len(a.chunks))
	case a.current < 0 && (a.top != 0 || a.end != 0 || base != 0 || a.filled != 0):
		t.Fatal("free memory without a current chunk")
	case base > a.top || a.top > a.end:
		t.Fatalf("base %#x, top %#x, end %#x", base, a.top, a.end)
	case filled < a.live || filled > reserved:
		t.Fatalf("%d bytes in %d blocks, of %d reserved", filled, a.live, reserved)
	}
	for i, e := range a.endings[min(1, len(a.endings)):] {
		if before := a.endings[i]; e.upTo <= before.upTo || !e.at.beyond(before.at) {
			t.Fatalf("endings %v", a.endings)
		}
	}
}

// A recorder is a parent that records the blocks it hands out.
type recorder struct {
	freehold.Allocator
	sizes  []int
	frees  int
	zeroed int
}

func (r *recorder) Alloc(size, align int) ([]byte, error) {
	b, err := r.Allocator.Alloc(size, align)
	if err == nil {
		r.sizes = append(r.sizes, size)
	}
	return b, err
}

func (r *recorder) Zeroed(size, align int) ([]byte, error) {
	b, err := r.Allocator.Zeroed(size, align)
	if err == nil {
		r.sizes = append(r.sizes, size)
		r.zeroed++
	}
	return b, err
}

func (r *recorder) Free(b []byte) {
	r.frees++
	r.Allocator.Free(b)
}

var wantPanic = panics.Want
