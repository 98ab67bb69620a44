//go:build freehold_debug

package heap

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/internal/vm"
)

// What a debug build finds, and when.
func TestDebugBuildFindsLateAndLongWrites(t *testing.T) { EachRate(t, testLateAndLongWrites) }

func testLateAndLongWrites(t *testing.T) {
	beyond := func(b []byte) []byte { return unsafe.Slice(unsafe.SliceData(b), len(b)+1) }
	tests := []struct {
		name string
		do   func(h *Heap)
		want string
	}{
		{"a write after Free", func(h *Heap) {
			b := alloc(t, h, 100)
			h.Free(b)
			b[7] = 1
			alloc(t, h, 100)
		}, "7 bytes into a free block, was written"},
		{"a write after Free to a cache", func(h *Heap) {
			var o LocalCache
			o.Init(h)
			b, _ := o.Alloc(100, 8, false)
			o.Free(b)
			b[99] = 0
			o.Alloc(100, 8, false)
		}, "99 bytes into a free block, was written"},
		{"a write after Free and a drain", func(h *Heap) {
			keep := alloc(t, h, 100)
			b := alloc(t, h, 100)
			h.Free(b)
			h.drain()
			b[0] = 1
			alloc(t, h, 100)
			_ = keep
		}, "0 bytes into a free block, was written"},
		{"a write to a block that nobody had", func(h *Heap) {
			b := alloc(t, h, 112)
			unsafe.Slice(unsafe.SliceData(b), 2*112)[112] = 1
			alloc(t, h, 112)
		}, "0 bytes into a free block, was written"},
		{"a write beyond the end", func(h *Heap) {
			b := alloc(t, h, 100)
			beyond(b)[100] = 1
			h.Free(b)
		}, "was written 1 byte beyond its end"},
		{"a write beyond the end of a cache's block", func(h *Heap) {
			var o LocalCache
			o.Init(h)
			b, _ := o.Alloc(100, 8, false)
			beyond(b)[100] = 1
			o.Free(b)
		}, "was written 1 byte beyond its end"},
		{"a write beyond the end that a Resize left", func(h *Heap) {
			b := alloc(t, h, 112)
			b, _ = h.Resize(b, 100)
			beyond(b)[100] = 1
			h.Free(b)
		}, "was written 1 byte beyond its end"},
		{"a write beyond the end of a large block", func(h *Heap) {
			b := alloc(t, h, 100_000)
			beyond(b)[100_000] = 1
			h.Free(b)
		}, "the block of 100000 bytes at"},
		{"a write to the last byte of a large block's last page", func(h *Heap) {
			b := alloc(t, h, 13*pageBytes-10)
			unsafe.Slice(unsafe.SliceData(b), 13*pageBytes)[13*pageBytes-1] = 1
			h.Free(b)
		}, "was written 10 bytes beyond its end"},
		{"a write beyond the end of a large block that Resize has cut", func(h *Heap) {
			b := alloc(t, h, 200_000)
			fill(b, 1)
			b, _ = h.Resize(b, 100_000)
			beyond(b)[100_000] = 1
			h.Free(b)
		}, "was written 1 byte beyond its end"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := makeHeap(Options{Decay: -1})
			defer h.Close()
			panics.Want(t, "..."+tt.want+"...", func() { tt.do(h) })
		})
	}
}

// Slow paths check the spans of their class, and free runs their neighbours.
func TestDebugBuildChecksInvariants(t *testing.T) {
	h := makeHeap(Options{Decay: -1})
	defer unregister(h) // it keeps a lock
	alloc(t, h, 64)
	c := &h.central[classOf[64/8]]
	spanPtr(c.partial.head).live++
	panics.Want(t, "...blocks are free in span...", func() {
		h.drain()
		alloc(t, h, 64)
	})
}

// UsableSize is what was asked for, so that a write behind it is found.
func TestDebugBuildHasNothingToSpare(t *testing.T) {
	h := newHeap(t, Options{})
	p := h.Malloc(100)
	if n := h.UsableSize(p); n != 100 {
		t.Errorf("%d bytes of 100 are usable", n)
	}
	h.FreePointer(p)
}

// A write to a large block after its Free is found when its pages are used again,
// by a block, by one that grows, or by a span.
func TestDebugBuildFindsLateWritesToLargeBlocks(t *testing.T) {
	const size = 1 << 20
	for _, tt := range []struct {
		name string
		use  func(h *Heap, before []byte)
	}{
		{"Alloc", func(h *Heap, _ []byte) { h.Alloc(size, 8, false) }},
		{"Zeroed", func(h *Heap, _ []byte) { h.Alloc(size, 8, true) }},
		{"Resize", func(h *Heap, before []byte) { h.Resize(before, 2*size) }},
		{"small Alloc", func(h *Heap, _ []byte) { h.Alloc(maxSmall, 8, false) }},
	} {
		for _, at := range []int{0, 1, 4096, 20000} {
			h := makeHeap(Options{Decay: -1, Name: "late"})
			before, b, _ := alloc(t, h, size), alloc(t, h, size), alloc(t, h, size)
			h.Free(b)
			b[at] = 1
			if got := panicOf(func() { tt.use(h, before) }); !strings.Contains(got, fmt.Sprintf(`heap "late": the byte at %#x, in free pages, was written`, &b[at])) {
				t.Errorf("byte %d, %s: panic %q", at, tt.name, got)
			}
			tt.use(h, before) // once; and no lock is held
			h.Close()
		}
	}
}

// Pages that the system has taken back, or a part of them, and those that it has
// not, are no late writes; and Zeroed is right over all of them.
func TestDebugBuildRaisesNoFalseAlarm(t *testing.T) {
	const size = 4 << 20
	purge := func(h *Heap, n uintptr) {
		h.pages.scavenging.Lock()
		defer h.pages.scavenging.Unlock()
		h.pages.purge(n)
	}
	for name, giveBack := range map[string]func(h *Heap, b []byte){
		"nothing": func(*Heap, []byte) {},
		"all":     func(h *Heap, _ []byte) { h.Trim() },
		"a part":  func(h *Heap, _ []byte) { purge(h, size/pageBytes/3) },
		"none": func(h *Heap, _ []byte) {
			defer refuse(vm.OpDecommit)()
			h.Trim()
		},
		"some, with a refusal": func(h *Heap, b []byte) {
			if vm.HolesReadZero {
				vm.Decommit(addrOf(b)+vm.PageBytes(), 3*vm.PageBytes())
			}
			defer refuse(vm.OpDecommit)()
			h.Trim()
		},
	} {
		for _, zero := range []bool{false, true} {
			h := newHeap(t, Options{})
			b := alloc(t, h, size)
			fill(b, 1)
			h.Free(b)
			giveBack(h, b)
			for _, size := range []int{size / 2, maxSmall, size, size / 4} {
				b, err := h.Alloc(size, 8, zero)
				if err != nil {
					t.Fatal(err)
				}
				if zero && !allSet(b, 0) {
					t.Errorf("%s was given back: %d bytes are not zero", name, size)
				}
				fill(b, 2)
				b, _ = h.Resize(b, size-size/4)
				h.Free(b)
			}
		}
	}
}

// Memory that a closed heap could not give back, and that of a run whose pages the
// system would not take, is no late write.
func TestDebugBuildKnowsWhatTheSystemRefused(t *testing.T) {
	h := newHeap(t, Options{})
	fill(alloc(t, h, 3<<20), 1)
	restore := refuse(vm.OpRevoke)
	h.Close()
	restore()
	h = newHeap(t, Options{})
	h.Free(alloc(t, h, 3<<20))

	h = newHeap(t, Options{WholePages: true})
	b := alloc(t, h, 1<<20)
	fill(b, 1)
	restore = refuse(vm.OpDecommit)
	h.Free(b)
	restore()
	alloc(t, h, 1<<20)
}
