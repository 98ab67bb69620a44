// Zero: memory that was used before reads zero again.

package pages

import (
	"syscall"
	"testing"

	"github.com/freehold-go/freehold/internal/vm"
)

// Zeroed clears used memory, and relies only on fresh memory to be zero.
func TestZeroedAfterUse(t *testing.T) {
	for _, size := range []int{1, 8, 16, 100, 4096, 32768, 32769, 1 << 20, 5 << 20} {
		h := newHeap(t, Options{})
		for round := range 4 {
			var live [][]byte
			for range max(4, min(300, (1<<20)/size)) {
				b, err := h.Alloc(size, 1, true)
				if err != nil {
					t.Fatal(err)
				}
				if !allSet(b, 0) {
					t.Fatalf("size %d, round %d: not zero", size, round)
				}
				fill(b, 0xA5)
				live = append(live, b)
			}
			for _, b := range live {
				h.Free(b)
			}
			switch round {
			case 1:
				h.Trim()
			case 2:
				h.Tick()
				h.Tick()
			}
		}
	}
}

// Clearing a block over pages without memory splits no huge page.
func TestZeroingSplitsNoHugePages(t *testing.T) {
	if !vm.TellsResident || !vm.HolesReadZero {
		t.Skip("zeroing gives nothing back here")
	}
	const size, from, to = 2 << 20, 1 << 20, 1<<20 + 64<<10
	h := newHeap(t, Options{HugePages: true})
	b := alloc(t, h, size)
	fill(b, 1)
	if err := vm.Decommit(addrOf(b[from:]), to-from); err != nil {
		t.Fatal(err)
	}
	h.Free(b)
	calls := callsOf(func() { b, _ = h.Alloc(size, 8, true) })
	if calls[vm.OpResident] == 0 || calls[vm.OpDecommit] != 0 {
		t.Errorf("the heap asked %d times what is resident, and gave pages back %d times", calls[vm.OpResident], calls[vm.OpDecommit])
	}
	if !allSet(b, 0) {
		t.Error("not zero")
	}
}

func TestZeroedOverPartlyUsedPages(t *testing.T) {
	h := newHeap(t, Options{})
	used := alloc(t, h, 40000)
	fill(used, 1)
	h.Free(used)
	b, err := h.Alloc(4<<20-PageBytes, 8, true)
	if err != nil {
		t.Fatal(err)
	}
	if !allSet(b, 0) {
		t.Error("not zero")
	}
	h.check(t)
}

func TestPagesAreZeroWhatTheSystemRefuses(t *testing.T) {
	h := newHeap(t, Options{WholePages: true})
	b := alloc(t, h, 8192)
	fill(b, 1)
	restore := refuse(vm.OpDecommit)
	h.Free(b)
	restore()
	b, _ = h.Alloc(8192, 8, true)
	if !allSet(b, 0) {
		t.Error("not zero")
	}
}

// If the system refuses to query or drop pages, other pages are resident, but all bytes are
// zero.
func TestZeroedWhateverTheSystemRefuses(t *testing.T) {
	for _, refused := range []vm.Op{vm.OpResident, vm.OpDecommit} {
		for _, size := range []int{3 << 20, 20<<20 + 5*PageBytes} {
			h := newHeap(t, Options{})
			b := alloc(t, h, size)
			fill(b[:size/3], 1)
			fill(b[size/2:], 1)
			h.Free(b)
			restore := refuse(refused)
			b, err := h.Alloc(size, 8, true)
			restore()
			if err != nil || !allSet(b, 0) {
				t.Errorf("%v is refused, %d bytes: not zero, %v", refused, size, err)
			}
			h.Close()
		}
	}
}

// The pages of one query's answer are cleared even if the next query fails.
func TestZeroedWhereTheSystemStopsAnswering(t *testing.T) {
	if !vm.TellsResident {
		t.Skip("this system never answers")
	}
	h := newHeap(t, Options{})
	size := askPages*int(vm.PageBytes()) + 4<<20
	b := alloc(t, h, size)
	fill(b, 1)
	h.Free(b)
	asked := 0
	restore := vm.SetFault(func(op vm.Op) error {
		if op == vm.OpResident {
			if asked++; asked > 1 {
				return syscall.ENOMEM
			}
		}
		return nil
	})
	b, err := h.Alloc(size, 8, true)
	restore()
	if err != nil || asked != 2 || !allSet(b, 0) {
		t.Errorf("not zero, after %d questions, %v", asked, err)
	}
}

// Whole units are dropped, the ends are cleared, and the neighbours stay.
func TestDroppingClearsTheEnds(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 6<<20+3*PageBytes)
	for _, size := range []int{PageBytes, 1 << 20, 2 << 20, 6 << 20} {
		fill(b, 1)
		part := b[PageBytes:][:size]
		zeroByDropping(addrOf(part), uintptr(size), vm.HugePageBytes)
		if !allSet(part, 0) {
			t.Errorf("%d bytes: not zero", size)
		}
		if !allSet(b[:PageBytes], 1) || !allSet(b[PageBytes+size:], 1) {
			t.Errorf("%d bytes: the neighbours changed", size)
		}
	}
}

func TestZeroingTakesNoGoMemory(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 4<<20)
	b[0] = 1
	h.Free(b)
	if n := testing.AllocsPerRun(100, func() {
		b, _ := h.Alloc(4<<20, 8, true)
		h.Free(b)
	}); n > 0 {
		t.Errorf("%v Go allocations", n)
	}
}
