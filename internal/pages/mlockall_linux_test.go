// A heap in a process that has locked all of its memory.

//go:build !race

package pages

import (
	"errors"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/freehold-go/freehold/internal/test/child"
)

// residentIn returns how much of h's segments is in memory.
func residentIn(t *testing.T, h *testHeap) (bytes int) {
	t.Helper()
	for _, segment := range h.pages.AllSegments() {
		bytes += residentBytes(t, bytesAt(segment.Base, int(segment.Size)))
	}
	return bytes
}

// When all mappings of the process are locked, the limit bounds the resident memory, and memory
// still goes back.
func TestLimitHoldsUnderMlockall(t *testing.T) { child.In(t, func() { limitHoldsUnderMlockall(t) }) }

func limitHoldsUnderMlockall(t *testing.T) {
	if err := unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE); errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.EPERM) {
		t.Skip("RLIMIT_MEMLOCK does not let the process lock its memory: ", err)
	} else if err != nil {
		t.Fatal(err)
	}
	needsFlags(t)
	const limit = 48 << 20
	for round := range 2 { // the second in the addresses of the first
		h := newHeap(t, Options{MaxBytes: limit})
		held := func(when string) int {
			t.Helper()
			st, resident := h.Stats(), residentIn(t, h)
			if resident > st.Committed-st.Metadata || st.Committed > limit {
				t.Errorf("round %d, %s: %d bytes are resident in blocks, %d counted, %d with metadata", round, when, resident, st.Committed-st.Metadata, st.Committed)
			}
			h.check(t)
			return st.Committed
		}
		live := [][]byte{alloc(t, h, 40000)}
		fill(live[0], 1)
		held("after the first block")
		if locked := advised(t, h, "lo"); locked < h.pages.Figures().Total {
			t.Errorf("round %d: %d bytes of %d are locked as they are touched", round, locked, h.pages.Figures().Total)
		}
		b := alloc(t, h, 9<<20)
		alloc(t, h, 40000) // in the way
		fill(b, 2)
		b, ok := h.Resize(b, 12<<20)
		if !ok || !allSet(b[:9<<20], 2) {
			t.Fatalf("round %d: the block was moved: %v", round, ok)
		}
		h.Free(b)
		held("after a block was moved and freed")
		for {
			b, err := h.Alloc(300_000, 8, false)
			if err != nil {
				break
			}
			fill(b, 3)
			live = append(live, b)
		}
		full := held("at the limit")
		for _, b := range live {
			h.Free(b)
		}
		h.Trim()
		left := held("after Trim")
		if errno := madvise(h.pages.AllSegments()[0].Base, 0, unix.MADV_DONTNEED_LOCKED); errno == 0 && left > full/8 {
			t.Errorf("round %d: %d bytes of %d stay after Trim", round, left, full)
		}
		h.Close()
	}
}

func madvise(addr, size uintptr, advice int) syscall.Errno {
	_, _, errno := unix.Syscall(unix.SYS_MADVISE, addr, size, uintptr(advice))
	return errno
}
