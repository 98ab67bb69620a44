// Heap: malloc and free of any size, for any goroutine.
//
// It wraps internal/heap, which has the implementation.

package freehold

import (
	"fmt"
	"sync"
	"time"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/heap"
	"github.com/freehold-go/freehold/internal/owners"
	"github.com/freehold-go/freehold/internal/pin"
)

// HeapOptions configures a [Heap]; nil means all defaults.
type HeapOptions struct {
	// Name appears in messages, in Stats, in profiles (package track) and, if the
	// kernel supports it, in /proc/self/smaps. Empty means "heap 1", "heap 2" and so on.
	Name string

	// MaxBytes is a hard limit, in bytes, on the memory that the heap holds
	// from the operating system, its own bookkeeping included: Stats.Committed
	// never exceeds it. 0 means no limit; a negative value panics. Each block size
	// in use takes a span of about 32 KiB, so the smallest useful limit is about
	// 1 MiB, and several MiB for mixed sizes.
	//
	// Before it refuses a block, the heap returns free pages to the system. It
	// also collects the free blocks of other sizes and processors, but not at each
	// refusal, so that refusals stay cheap for a caller that then frees blocks,
	// such as a cache. It looks for them once in 10 ms, or once it has refused
	// blocks for a 32nd of the limit. It collects them if they are a 32nd of the
	// limit, or if the last collection was 10 ms ago.
	//
	// Mixed sizes fragment memory, so a cache that evicts until a value fits may
	// evict far more than its size. Limit the evictions, or use a heap or a pool
	// for each range of sizes. A block larger than the limit is refused in the
	// same way: compare its size with the limit first.
	//
	// Under mlockall, the limit also bounds the resident part of memory that the
	// heap takes from then on (Linux 5.4; returning it needs 5.18). Call mlockall
	// before the first block or with MCL_ONFAULT. Otherwise it makes every page
	// that the heap may use resident, counted or not.
	MaxBytes int

	// Decay is how long the heap keeps unused memory before it returns it to the
	// operating system. 0 means one second; a negative value means that only Trim
	// returns memory. Free runs of 8 MiB and more are returned sooner: after a
	// tenth to a fifth of Decay without such a large allocation. They wait longer
	// if memory that was returned early was needed again within one Decay. A heap of
	// up to 64 MiB also returns unused memory while it grows.
	Decay time.Duration

	// WholePages makes each block whole pages of 8 KiB, and returns its memory to
	// the operating system at Free: Decay is ignored. Each call costs a system
	// call or more, and reused pages fault in again. As in any heap, only Zeroed
	// guarantees zeros.
	WholePages bool

	// HugePages asks the kernel for huge pages (2 MiB) and returns memory in that
	// unit only. It speeds up random access to large data. The first touch of a
	// page makes the 2 MiB around it resident, used or not; neither Stats nor
	// MaxBytes counts that. The same happens without HugePages if
	// /sys/kernel/mm/transparent_hugepage/enabled is "always". To avoid it, set
	// it to "madvise" or call prctl(PR_SET_THP_DISABLE).
	HugePages bool
}

// Heap is a general allocator: blocks of any size, freed in any order, by any
// goroutine. It implements [Owner].
//
// Blocks up to 32 KiB are rounded up to a size class and cost two bytes of
// bookkeeping each. From 128 B on, rounding wastes an eighth at most and 4% on
// average. Larger blocks are rounded up to a multiple of 8 KiB.
//
// Alloc and Free of a small block usually take no lock. A block of up to 1 MiB takes none
// either if its processor has just freed one with equally many pages. Other large blocks
// take the heap's lock (go run ./lab bench --loads pair). Neither call allocates on the
// Go heap.
//
// Freed memory is reused at once. It is returned to the operating system after
// HeapOptions.Decay without use. Free and Resize panic for a slice that is not
// exactly a live block of this heap: freed before, cut short, beginning inside a
// block, or from elsewhere. If two calls free a block at the same moment, both
// may return. A later Alloc detects that and panics. The block gets two owners
// only if two Allocs then race for it.
//
// Not detected: reading or writing a block after its Free or past its end, and a
// second Free once the memory is a live block of the same length again: that block is
// freed. FREEHOLD_DEBUG=poison finds writes, see docs/reliability.md.
//
// Make one with [NewHeap]. Calls of a zero Heap panic, except Owns, GoodSize and Free
// of nil.
type Heap struct {
	h heap.Heap // the only field, as pin.New and heap.Fast demand
}

const _ = -(unsafe.Sizeof(Heap{}) ^ unsafe.Sizeof(Heap{}.h))

var defaultHeap = newShared(&HeapOptions{Name: "default"})

func init() { heap.Of = func(h any) *heap.Heap { return &h.(*Heap).h } } // for package track

// Default returns the process-wide heap. It is for applications: a library should
// take an Allocator from its caller. Its Close panics.
func Default() *Heap { return defaultHeap }

var wholePages = sync.OnceValue(func() *Heap {
	return newShared(&HeapOptions{Name: "pages", WholePages: true})
})

// Pages returns the process-wide heap of whole pages: see [HeapOptions].WholePages.
// Use it as the parent of other allocators, and for few, large, long-lived blocks.
// Its Close panics.
func Pages() *Heap { return wholePages() }

// NewHeap returns an empty heap. It takes no off-heap memory before the first block. On
// the Go heap it takes about 21 KiB, and 5 KiB more for each further group of 8 to 15
// processors. Close returns its memory; a heap dropped without Close keeps it, and
// FREEHOLD_DEBUG=leak reports it.
func NewHeap(o *HeapOptions) *Heap {
	if o == nil {
		o = &HeapOptions{}
	}
	h := pin.New[Heap]()
	h.h.Init(heap.Options{
		Name:       o.Name,
		MaxBytes:   o.MaxBytes,
		Decay:      o.Decay,
		WholePages: o.WholePages,
		HugePages:  o.HugePages,
	})
	owners.Watch(h, "freehold.Heap", o.Name)
	return h
}

// newShared returns a heap that is never closed.
func newShared(o *HeapOptions) *Heap {
	h := NewHeap(o)
	h.h.Shared = true
	owners.Closed(h) // nothing to watch
	return h
}

// Alloc implements [Allocator]. The error says whether the limit or the
// operating system refused.
func (h *Heap) Alloc(size, align int) ([]byte, error) {
	code := &heap.Fast.Alloc
	return (*(*func(h *Heap, size, align int, zero bool) ([]byte, error))(unsafe.Pointer(&code)))(h, size, align, false)
}

// Zeroed implements [Allocator]. It does not clear memory fresh from the operating
// system. On Linux, in used memory of 1 MiB to 1 GiB, it clears only resident pages; a
// larger run is returned to the system instead. So a large block that is used in part
// costs only the used part, each time.
func (h *Heap) Zeroed(size, align int) ([]byte, error) {
	code := &heap.Fast.Alloc
	return (*(*func(h *Heap, size, align int, zero bool) ([]byte, error))(unsafe.Pointer(&code)))(h, size, align, true)
}

// Resize implements [Allocator]. A block up to 32 KiB stays in place if the new
// size fits its class and fills more than half of it. A larger block shrinks in
// place, grows into free pages behind it or, on Linux and above 8 MiB, has its
// pages remapped. During a remap both sizes count against MaxBytes. Size 0 frees b.
func (h *Heap) Resize(b []byte, size int) ([]byte, bool) { return h.h.Resize(b, size) }

// Free implements [Allocator]. It panics if b is not exactly a live block of h.
func (h *Heap) Free(b []byte) {
	code := &heap.Fast.Free
	(*(*func(h *Heap, b []byte))(unsafe.Pointer(&code)))(h, b)
}

// Owns implements [Owner]. It is true for any part of the heap's memory, in use
// or not.
func (h *Heap) Owns(b []byte) bool { return h.h.Owns(b) }

// GoodSize returns the size of the block that Alloc would use for size bytes:
// allocating all of it takes no more memory. It is 0 for a size of 0 or less.
func (h *Heap) GoodSize(size int) int { return h.h.GoodSize(size) }

// Malloc is C's malloc, for callers that keep no sizes. It returns a block of size
// bytes at a multiple of 16, contents undefined, or nil if out of memory. Size 0
// returns a block too; a negative size panics. The block is valid until
// FreePointer or a successful ReallocPointer.
func (h *Heap) Malloc(size int) unsafe.Pointer {
	code := &heap.Fast.Malloc
	return (*(*func(h *Heap, size int) unsafe.Pointer)(unsafe.Pointer(&code)))(h, size)
}

// Calloc is Malloc of n*size bytes, all zero. It also returns nil if the product
// overflows. A negative n or size panics.
func (h *Heap) Calloc(n, size int) unsafe.Pointer { return h.h.Calloc(n, size) }

// ReallocPointer is C's realloc: it resizes the block at p to size bytes, moves it
// if necessary, and returns its address. The result is at a multiple of 16, so a
// block from Alloc that is not there moves; a larger alignment may be lost. If out
// of memory, it returns nil and leaves the block unchanged. A nil p makes it
// Malloc. Size 0 returns a block too. It panics if p is not a live block, and if size
// is negative.
func (h *Heap) ReallocPointer(p unsafe.Pointer, size int) unsafe.Pointer {
	return h.h.ReallocPointer(p, size)
}

// FreePointer frees the block at p, which Malloc, Calloc or ReallocPointer
// returned. It panics if p is not a live block. A nil p is a no-op.
func (h *Heap) FreePointer(p unsafe.Pointer) {
	code := &heap.Fast.FreePointer
	(*(*func(h *Heap, p unsafe.Pointer))(unsafe.Pointer(&code)))(h, p)
}

// UsableSize returns the number of usable bytes in the block at p, at least the
// requested size; 0 for nil. It panics if p is not a live block.
func (h *Heap) UsableSize(p unsafe.Pointer) int { return h.h.UsableSize(p) }

// Trim returns all memory without a live block to the operating system. It drains
// the processors' caches, which stops the world for microseconds, and makes a
// system call for each run of free pages.
func (h *Heap) Trim() { h.h.Trim() }

// Close ends the heap and all of its blocks, live or not. It returns their memory
// to the operating system. Any later access to it faults, where the system
// supports that, until another heap reuses the addresses. Other goroutines must
// have stopped using the heap. Later calls that allocate, resize or free a block, or
// change the heap in another way, panic. Close, Free of nil and calls that only report
// still work. Close of [Default] and [Pages] panics, since others may have blocks
// there.
func (h *Heap) Close() {
	if h.h.Shared {
		arg.Panicf("Heap.Close", "Default and Pages serve the whole process and are never closed")
	}
	owners.Closed(h)
	h.h.Close()
}

// String returns the heap's name and figures in bytes:
//
//	heap "blocks": 112000 bytes live, 147456 resident, limit 67108864
//
// It leaves out the limit if there is none. For a closed heap it returns
// heap "blocks": closed. It costs a call of Stats.
func (h *Heap) String() string {
	if h == nil {
		return "<nil>"
	}
	st := h.Stats()
	if h.h.Closed() {
		return fmt.Sprintf("heap %q: closed", st.Name)
	}
	s := fmt.Sprintf("heap %q: %s live, %d resident", st.Name, arg.Bytes(st.LiveBytes), st.Resident)
	if st.MaxBytes > 0 {
		s += fmt.Sprintf(", limit %d", st.MaxBytes)
	}
	return s
}
