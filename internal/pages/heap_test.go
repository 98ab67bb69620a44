// A heap of large blocks only, which the tests of this package share.

package pages

import (
	"errors"
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/internal/poison"
	"github.com/freehold-go/freehold/internal/vm"
)

// testHeap hands out large blocks of a Heap, as the layer above does.
type testHeap struct{ pages Heap }

func makeHeap(o Options) *testHeap {
	h := &testHeap{}
	h.pages.Init(o, h.Tick)
	return h
}

// newHeap returns a heap whose invariants are checked at the end of the test.
func newHeap(t testing.TB, o Options) *testHeap {
	if o.Decay == 0 {
		o.Decay = -1 // tests call Tick themselves
	}
	h := makeHeap(o)
	t.Cleanup(func() {
		if !h.pages.Closed.Load() && !t.Failed() {
			h.check(t)
			h.Close()
		}
	})
	return h
}

// Alloc purges free pages for a request, as the layer above does, which also drains its caches.
func (h *testHeap) Alloc(size, align int, zero bool) ([]byte, error) {
	need := vm.RoundUp(uintptr(size), PageBytes) / PageBytes
	s, err := h.pages.AllocBlock(uintptr(size), uintptr(align), zero)
	for _, giveBack := range []func() bool{func() bool { return h.pages.PurgeFor(need) }, h.reclaim, func() bool { return h.pages.PurgeFor(need) }} {
		if err != nil && err != ErrClosed && giveBack() {
			s, err = h.pages.AllocBlock(uintptr(size), uintptr(align), zero)
		}
	}
	if errors.Is(err, ErrOutOfMemory) {
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOutOfMemory, err)
	}
	NoteGrowth()
	return bytesAt(s.Base, size), nil
}

func (h *testHeap) reclaim() bool {
	h.pages.Scavenging.Lock()
	defer h.pages.Scavenging.Unlock()
	h.pages.RetryUnmapped()
	h.pages.RetryPurge()
	return true
}

func (h *testHeap) Free(b []byte) {
	if !h.pages.FreeBlock(SpanAt(addrOf(b)), addrOf(b), uintptr(len(b))) {
		panic(fmt.Sprintf("freehold: no block of %d bytes at %#x", len(b), addrOf(b)))
	}
}

func (h *testHeap) Resize(b []byte, size int) ([]byte, bool) {
	s, live := h.pages.ResizeBlock(SpanAt(addrOf(b)), addrOf(b), uintptr(len(b)), uintptr(size))
	if !live {
		panic(fmt.Sprintf("freehold: no block of %d bytes at %#x", len(b), addrOf(b)))
	}
	if s == nil {
		return nil, false
	}
	NoteGrowth()
	return bytesAt(s.Base, size), true
}

func (h *testHeap) Trim() {
	h.reclaim()
	h.pages.Scavenging.Lock()
	defer h.pages.Scavenging.Unlock()
	h.pages.Purge(^uintptr(0))
}

func (h *testHeap) Tick() {
	h.pages.Scavenging.Lock()
	defer h.pages.Scavenging.Unlock()
	if h.pages.Closed.Load() {
		return
	}
	h.pages.Alarm.Stop()
	h.pages.RetryUnmapped()
	if h.pages.PurgeUnused() {
		h.pages.Wake()
	}
}

func (h *testHeap) Close() {
	h.pages.Scavenging.Lock()
	defer h.pages.Scavenging.Unlock()
	if !h.pages.Closed.Swap(true) {
		h.pages.Close()
	}
}

// stats are figures of a testHeap, in bytes.
type stats struct{ Committed, Resident, Metadata, Active, LargeBytes, Allocated, PurgedBytes int }

func (h *testHeap) Stats() stats {
	n := h.pages.Figures()
	return stats{int(n.Committed), int(n.Committed), int(n.Metadata), int(n.Committed - n.Metadata - n.Dirty), int(n.Large.Bytes), int(n.Large.Bytes), int(n.Traffic.Purged)}
}

// check verifies the invariants of h. No other goroutine may use h.
func (h *testHeap) check(t testing.TB) {
	t.Helper()
	h.pages.Scavenging.Lock()
	defer h.pages.Scavenging.Unlock()
	if err := h.pages.Verify(&Tally{}, Range{}, func(*Span, uintptr) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

const never = time.Duration(1) << 50 // a decay whose timer does not fire here

func useAndFree(t *testing.T, h *testHeap, size int) {
	t.Helper()
	b := alloc(t, h, size)
	b[0] = 1
	h.Free(b)
}

func alloc(t testing.TB, h *testHeap, size int) []byte {
	t.Helper()
	b, err := h.Alloc(size, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func addrOf(b []byte) uintptr               { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
func bytesAt(addr uintptr, size int) []byte { return unsafe.Slice((*byte)(vm.Pointer(addr)), size) }

var fill = poison.FillBytes

func allSet(b []byte, v byte) bool { return poison.Other(b, v) < 0 }

var panicOf = panics.Of

var refuse = vm.Refuse

// callsOf counts f's system calls by kind.
func callsOf(f func()) (calls [vm.NumOps]int) {
	defer vm.SetFault(func(op vm.Op) error { calls[op]++; return nil })()
	f()
	return calls
}
