package heap

import (
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/vm"
)

// noQuarantine has freed guarded blocks used again at once.
func noQuarantine(t *testing.T) {
	was := quarantineMax
	quarantineMax.blocks = 0
	t.Cleanup(func() { quarantineMax = was })
}

// A freed block whose pages stay accessible, since the system refuses, is not handed out
// again: nothing would catch the use of it that was meant to fault.
func TestGuardedBlockThatStaysAccessible(t *testing.T) {
	guardAt(t, 1, 0)
	noQuarantine(t)
	h := newHeap(t, Options{})
	b := alloc(t, h, 64)
	restore := refuseOps(vm.OpAdvise, vm.OpRevoke)
	h.Free(b)
	restore()
	for range 10 {
		c := alloc(t, h, 64)
		if &c[0] == &b[0] {
			t.Fatal("its pages were never closed, and it is in use again")
		}
		h.Free(c)
	}
	if st := h.Stats(); st.Blocks != 0 || st.Guarded != 0 {
		t.Errorf("%+v", st)
	}
}

// A freed block whose guard the kernel refuses is revoked, and used again as such.
func TestGuardedBlockThatIsRevoked(t *testing.T) {
	guardAt(t, 1, 0)
	noQuarantine(t)
	h := newHeap(t, Options{})
	b := alloc(t, h, 64)
	restore := refuseOps(vm.OpAdvise)
	h.Free(b)
	restore()
	mustFault(t, b, 0)
	c := alloc(t, h, 64)
	if &c[0] != &b[0] {
		t.Fatal("its run is lost")
	}
	fill(c, 1)
	mustFault(t, c, 64)
	h.Free(c)
	mustFault(t, c, 0)
	h.check(t)
}

// refuseOps has the system refuse some calls.
func refuseOps(ops ...vm.Op) (restore func()) {
	return vm.SetFault(func(op vm.Op) error {
		for _, refused := range ops {
			if op == refused {
				return syscall.ENOMEM
			}
		}
		return nil
	})
}

// Of two writes in front of a block, the nearer one is told.
func TestWritesInFrontOfAGuardedBlock(t *testing.T) {
	guardAt(t, 1, 0)
	h := newHeap(t, Options{})
	b := alloc(t, h, 64)
	for _, at := range []int{-3, -100} {
		*(*byte)(unsafe.Add(unsafe.Pointer(&b[0]), at)) = 1
	}
	if got := panicOf(func() { h.Free(b) }); !strings.Contains(got, "3 bytes before the beginning") {
		t.Error(got)
	}
	h.Free(b)
}

// The address behind a block's last byte is not in the block.
func TestFreeBehindAGuardedBlock(t *testing.T) {
	guardAt(t, 1, 0)
	h := newHeap(t, Options{})
	b := alloc(t, h, 100)
	behind := block(uintptr(unsafe.Pointer(&b[0]))+100, 4, false)
	if got := panicOf(func() { h.Free(behind) }); !strings.Contains(got, "it is not in a block, but next to one of 100 bytes") {
		t.Error(got)
	}
	h.Free(b)
}

// Guarded blocks count as others do: the large ones among the large ones, and none after
// Close.
func TestStatsOfGuardedBlocks(t *testing.T) {
	guardAt(t, 1, 0)
	h := newHeap(t, Options{})
	small, large := alloc(t, h, 64), alloc(t, h, 100_000)
	st := h.Stats()
	if want := h.goodSize(100_000); st.Blocks != 2 || st.LargeBlocks != 1 || st.LargeBytes != want {
		t.Errorf("%+v, want a large block of %d bytes", st, want)
	}
	h.Free(large)
	if st := h.Stats(); st.Blocks != 1 || st.LargeBlocks != 0 || st.LargeBytes != 0 {
		t.Errorf("%+v", st)
	}
	_ = small
	h.Close()
	g := h.theGuards()
	if none := (guardCount{}); g.live != none || g.large != none || g.waiting != none {
		t.Errorf("after Close %+v are live, %+v large, %+v in quarantine", g.live, g.large, g.waiting)
	}
	if g.segments != nil || g.uncarved.Size != 0 || g.quarantine.Head != 0 || g.idle != [guardOrders]pages.List{} {
		t.Error("after Close there are runs")
	}
}
