// Heap: malloc and free of any size, for any goroutine.
//
// A thin face on internal/heap, where the engine is.

package freehold

import (
	"fmt"
	"log/slog"
	"time"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/heap"
)

// HeapOptions sets up a [Heap]; nil means all defaults.
type HeapOptions struct {
	// Name stands in messages, in Stats and, where the kernel can, in
	// /proc/self/smaps. Empty means "heap".
	Name string

	// MaxBytes is a hard limit, in bytes, on the memory that the heap holds
	// from the operating system at any moment, its own bookkeeping included:
	// Stats.Committed never passes it. 0 means none; negative is a panic.
	// Before it refuses, the heap gives back all memory without a live block.
	// For a 32nd of the limit it does so once in 10 ms, so a refusal to a caller
	// who then frees, as a cache does, costs about a microsecond. Each block size
	// in use takes a span of about 32 KiB: the least useful limit is about 1 MiB,
	// and several for mixed sizes.
	//
	// Mixed sizes fragment, so a cache that evicts until a value fits may evict
	// far more than its size. Bound the evictions, or have a heap or a pool for
	// each range of sizes. What can never fit is refused in the same way: compare
	// the size with the limit first.
	//
	// Under mlockall the limit holds what is resident too (Linux 5.4; memory goes
	// back from 5.18 on) in what the heap takes from then on. Call mlockall
	// before the first block or with MCL_ONFAULT: else it makes all pages that the
	// heap has or may hand out resident, beyond what is counted.
	MaxBytes int

	// Decay is how long memory that is not needed stays with the heap before
	// it goes back to the operating system. 0 means one second; negative means
	// that only Trim gives memory back. Free stretches of 8 MiB and more go
	// back after a tenth to a fifth of it in which no block of that size was
	// allocated, unless such memory was needed again within one decay lately.
	Decay time.Duration

	// WholePages makes each block whole pages of 8 KiB, and gives its memory back
	// to the operating system at Free: Decay is ignored. A call costs a
	// microsecond or more, and pages that are used again are faulted in again. As
	// in any heap, only Zeroed promises zeros.
	WholePages bool

	// HugePages asks the kernel for huge pages (2 MiB) and gives memory back
	// in such units only. It speeds up random access to large data, and costs
	// resident memory that neither Stats nor MaxBytes counts: the first touch of
	// a page makes the whole 2 MiB around it resident, used or not. The same
	// happens without HugePages where
	// /sys/kernel/mm/transparent_hugepage/enabled is "always"; set it to
	// "madvise", or call prctl(PR_SET_THP_DISABLE), where that matters.
	HugePages bool
}

// Heap is a general allocator: blocks of any size, freed in any order, by any
// goroutine. It implements [Owner].
//
// Blocks up to 32 KiB are rounded up to a size class, with an eighth of waste at
// most from 128 B on and 4% on average, and cost two bytes of bookkeeping each. Larger ones
// are rounded up to 8 KiB. Alloc and Free of a small block take a few
// nanoseconds and no lock; of a large one, the heap's lock (load pair of go run
// ./bench). Neither allocates on the Go heap.
//
// Freed memory is used again at once, and goes back to the operating system
// when it was not needed for the time of HeapOptions.Decay. Free and Resize
// panic for a slice that is not exactly a live block of this heap: one freed
// before, cut short, beginning inside a block, from elsewhere. Two calls that
// free one block in the same few nanoseconds may both return. A later Alloc
// finds that and panics; the block gets two owners only if two more calls
// coincide as closely.
//
// What is not detected: reading or writing a block after its Free, or beyond
// its end.
//
// Make one with [NewHeap]: calls of a zero Heap that need memory, or know of
// some, panic.
type Heap struct {
	h      heap.Heap
	shared bool // by the whole process: Close panics
}

var defaultHeap = newShared(&HeapOptions{Name: "default"})

// Default returns the one process-wide heap, for applications; a library takes
// an Allocator from its caller. Close of it panics.
func Default() *Heap { return defaultHeap }

// NewHeap returns an empty heap. It takes no memory before the first block.
// Close gives its memory back; a heap that is dropped without Close keeps it.
func NewHeap(o *HeapOptions) *Heap {
	if o == nil {
		o = &HeapOptions{}
	}
	h := &Heap{}
	h.h.Init(heap.Options{
		Name:       o.Name,
		MaxBytes:   o.MaxBytes,
		Decay:      o.Decay,
		WholePages: o.WholePages,
		HugePages:  o.HugePages,
	})
	register(h)
	return h
}

// newShared returns a heap that is never closed.
func newShared(o *HeapOptions) *Heap {
	h := NewHeap(o)
	h.shared = true
	return h
}

// Alloc implements [Allocator]. The error says whether the limit or the
// operating system refused.
func (h *Heap) Alloc(size, align int) ([]byte, error) { return h.h.Alloc(size, align, false) }

// Zeroed implements [Allocator]. Memory that comes fresh from the operating
// system is not cleared a second time. Where memory of a MiB and more is used
// again, on Linux only the pages that are in physical memory are cleared, up to
// 1 GiB at a time; beyond that they are given back instead. So a large block
// that is used in part costs what is used, each time.
func (h *Heap) Zeroed(size, align int) ([]byte, error) { return h.h.Alloc(size, align, true) }

// Resize implements [Allocator]. A block up to 32 KiB stays in place while it
// fills more than half of its class and fits. A larger one is cut, grows over
// free pages behind it or, on Linux and from 1 MiB on, has its pages moved; for
// the moment of a move both sizes count against MaxBytes. Size 0 frees b.
func (h *Heap) Resize(b []byte, size int) ([]byte, bool) { return h.h.Resize(b, size) }

// Free implements [Allocator]. It panics if b is not exactly a live block of h.
func (h *Heap) Free(b []byte) { h.h.Free(b) }

// Owns implements [Owner]. It is true for any part of the heap's memory, in use
// or not.
func (h *Heap) Owns(b []byte) bool { return h.h.Owns(b) }

// GoodSize returns the size of the block that Alloc would use for size bytes:
// asking for it costs no more memory.
func (h *Heap) GoodSize(size int) int { return h.h.GoodSize(size) }

// Malloc returns a block of size bytes at a multiple of 16, contents undefined,
// or nil when out of memory: C's malloc, for callers that keep no sizes. Size 0
// gives a block too; a negative size is a panic. The block ends with
// FreePointer or a ReallocPointer that succeeds.
func (h *Heap) Malloc(size int) unsafe.Pointer { return h.h.Malloc(size) }

// Calloc is Malloc of n*size bytes, all zero; nil too if the product is larger
// than an address space.
func (h *Heap) Calloc(n, size int) unsafe.Pointer { return h.h.Calloc(n, size) }

// ReallocPointer makes the block at p size bytes long, moving it if need be,
// and returns where it is: C's realloc. The result is at a multiple of 16, as
// Malloc's is; a block of Alloc that is not moves, and a larger alignment may be
// lost. It returns nil, and leaves the block alone, when out of memory. A nil p
// makes it Malloc.
func (h *Heap) ReallocPointer(p unsafe.Pointer, size int) unsafe.Pointer {
	return h.h.ReallocPointer(p, size)
}

// FreePointer frees the block at p, which Malloc, Calloc or ReallocPointer
// returned, and panics if there is none. A nil p is accepted.
func (h *Heap) FreePointer(p unsafe.Pointer) { h.h.FreePointer(p) }

// UsableSize returns how many bytes of the block at p may be used, at least
// what was asked for; 0 for nil. It panics if p is no live block.
func (h *Heap) UsableSize(p unsafe.Pointer) int { return h.h.UsableSize(p) }

// Trim gives all memory that holds no live block back to the operating system,
// now. It empties the processors' caches, for which it stops the world for some
// microseconds, and takes a system call for each run of free pages.
func (h *Heap) Trim() { h.h.Trim() }

// Close ends the heap and all of its blocks, live or not. Their memory goes
// back to the operating system and, where the system can, any access to it
// faults; the addresses go to other heaps later. Other goroutines must have
// stopped using the heap. Calls after Close panic, but for Close itself. So does
// Close of [Default] and [Pages], in which others may have blocks.
func (h *Heap) Close() {
	if h.shared {
		arg.Panicf("Heap.Close", "Default and Pages serve the whole process and are never closed")
	}
	unregister(h)
	h.h.Close()
}

// String returns the heap's name and figures in bytes, as LogValue has them:
//
//	heap "blocks": 112000 live, 147456 resident, limit 67108864
//
// The limit is left out where there is none, and a closed heap has no figures:
// heap "blocks": closed. It costs a call of Stats.
func (h *Heap) String() string {
	switch {
	case h == nil:
		return "<nil>"
	case h.h.Closed():
		return fmt.Sprintf("heap %q: closed", h.Stats().Name)
	}
	return describe(h.Stats())
}

// LogValue implements [slog.LogValuer]. It is a group of the heap's name, the
// bytes live (Stats.LiveBytes) and resident, and the limit if there is one; of
// the name and closed=true for a closed heap.
func (h *Heap) LogValue() slog.Value {
	switch {
	case h == nil:
		return slog.StringValue("<nil>")
	case h.h.Closed():
		return slog.GroupValue(slog.String("name", h.Stats().Name), slog.Bool("closed", true))
	}
	return logValue(h.Stats())
}

func describe(st Stats) string {
	s := fmt.Sprintf("heap %q: %d live, %d resident", st.Name, st.LiveBytes, st.Resident)
	if st.MaxBytes > 0 {
		s += fmt.Sprintf(", limit %d", st.MaxBytes)
	}
	return s
}

func logValue(st Stats) slog.Value {
	attrs := []slog.Attr{slog.String("name", st.Name), slog.Int("live", st.LiveBytes), slog.Int("resident", st.Resident)}
	if st.MaxBytes > 0 {
		attrs = append(attrs, slog.Int("limit", st.MaxBytes))
	}
	return slog.GroupValue(attrs...)
}
