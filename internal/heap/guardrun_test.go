// Guard runs: what an access finds, and what becomes of freed blocks.

package heap

import (
	"fmt"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/vm"
)

// eachGuard runs a test with the guards of the kernel, and with mappings.
func eachGuard(t *testing.T, test func(t *testing.T)) {
	t.Run("guards", test)
	t.Run("mappings", func(t *testing.T) {
		defer vm.SetFault(func(op vm.Op) error {
			if op == vm.OpAdvise {
				return syscall.EINVAL
			}
			return nil
		})()
		test(t)
	})
}

// faultAt returns the address at which reading p, or writing it, faults; 0 if neither does.
func faultAt(p unsafe.Pointer, write bool) (addr uintptr) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if err := recover(); err != nil {
			addr = err.(interface{ Addr() uintptr }).Addr()
		}
	}()
	if write {
		*(*byte)(p) = 1
	} else {
		sink = *(*byte)(p)
	}
	return 0
}

var sink byte

func mustFault(t *testing.T, b []byte, at int) {
	t.Helper()
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(b))) + uintptr(at)
	for _, write := range []bool{false, true} {
		if got := faultAt(vm.Pointer(addr), write); got != addr {
			t.Errorf("byte %d of %d: fault at %#x, want %#x; write %v", at, len(b), got, addr, write)
		}
	}
}

// A guarded block reads zero. All of it is accessible, behind it nothing is but what its
// alignment takes, and nothing is once it is free.
func TestGuardedBlockEndsAtAGuard(t *testing.T) {
	eachGuard(t, func(t *testing.T) {
		guardAt(t, 1, 0)
		h := newHeap(t, Options{})
		for round := range 3 {
			for _, size := range []int{1, 7, 8, 64, 100, 4095, 4096, 4097, 8192, maxSmall, maxSmall + 1, 300000, maxGuarded} {
				for _, align := range []int{1, 8, 16, 64, 4096} {
					b, err := h.Alloc(size, align, false)
					if err != nil || uintptr(unsafe.Pointer(&b[0]))%uintptr(align) != 0 || len(b) != size || cap(b) != size {
						t.Fatalf("size %d, align %d: %p, %d and %d bytes, %v", size, align, b, len(b), cap(b), err)
					}
					if !allSet(b, 0) {
						t.Errorf("size %d, align %d: not zero in round %d", size, align, round)
					}
					fill(b, 0xFF)
					mustFault(t, b, int(pages.RoundUp(uintptr(size), uintptr(align))))
					if st := h.Stats(); st.Guarded != 1 || st.Blocks != 1 || st.Allocated != h.goodSize(size) || (size > maxSmall) != (st.LargeBlocks == 1) {
						t.Errorf("size %d: %+v", size, st)
					}
					h.check(t)
					h.Free(b)
					mustFault(t, b, 0)
					mustFault(t, b, size-1)
				}
			}
		}
		h.Trim()
		if st := h.Stats(); st.Guarded != 0 || st.Blocks != 0 || st.Active != 0 || st.Committed != st.Metadata {
			t.Errorf("all is free: %+v", st)
		}
	})
}

// Larger blocks and alignments are left alone, and counted.
func TestNotGuarded(t *testing.T) {
	guardAt(t, 1, 0)
	h := newHeap(t, Options{})
	for i, req := range [][2]int{{maxGuarded + 1, 8}, {8, int(2 * vm.PageBytes())}} {
		b, err := h.Alloc(req[0], req[1], false)
		if err != nil {
			t.Fatal(err)
		}
		h.Free(b)
		if st := h.Stats(); st.GuardedEver != 0 || st.GuardsSkipped != uint64(i+1) {
			t.Errorf("%d: %+v", req, st)
		}
	}
}

// The bytes around a block, up to its pages' ends, are checked when it is freed.
func TestBytesAroundAGuardedBlock(t *testing.T) {
	guardAt(t, 1, 0)
	h := newHeap(t, Options{Name: "h"})
	for _, tt := range []struct {
		size, align, at int
		want            string
	}{
		{60, 8, 60, "overflow at 0x%x: 1 byte past the end of a block of 60 bytes"},
		{57, 64, 63, "overflow at 0x%x: 7 bytes past the end of a block of 57 bytes"},
		{64, 8, -1, "underflow at 0x%x: 1 byte before the beginning of a block of 64 bytes"},
		{64, 8, -4032, "underflow at 0x%x: 4032 bytes before the beginning of a block of 64 bytes"},
	} {
		b, err := h.Alloc(tt.size, tt.align, false)
		if err != nil {
			t.Fatal(err)
		}
		p := unsafe.Add(unsafe.Pointer(&b[0]), tt.at)
		*(*byte)(p) = 1
		got := panicOf(func() { h.Free(b) })
		if want := fmt.Sprintf(tt.want, uintptr(p)) + ` of heap "h"` + "\nallocated at:\n"; !strings.Contains(got, want) {
			t.Errorf("%s\nwant %s", got, want)
		}
		h.Free(b)
	}
}

func TestMisuseOfGuardedBlocks(t *testing.T) {
	guardAt(t, 1, 0)
	h, other := newHeap(t, Options{Name: "h"}), newHeap(t, Options{})
	freed, live := alloc(t, h, 64), alloc(t, h, 100)
	h.Free(freed)
	const inStacks = "\nallocated at:\n\t"
	for _, tt := range []struct {
		do   func()
		want string
	}{
		{func() { h.Free(freed) }, "the block is free; it was freed before (double free)" + inStacks},
		{func() { h.Free(freed) }, "\nfreed at:\n\t"},
		{func() { h.Free(freed[8:]) }, "the block is free; it was freed before (double free), or never allocated" + inStacks},
		{func() { h.FreePointer(unsafe.Pointer(&freed[0])) }, "double free"},
		{func() { h.UsableSize(unsafe.Pointer(&freed[0])) }, "double free"},
		{func() { h.Resize(freed, 10) }, "double free"},
		{func() { other.Free(live) }, "the memory belongs to another heap"},
		{func() { h.Free(live[8:]) }, "it points 8 bytes into a block of 100 bytes" + inStacks},
		{func() { h.Free(live[:8]) }, "it has 8 bytes, the block 100; a block is freed whole" + inStacks},
		{func() { h.Resize(live[8:], 10) }, "it points 8 bytes into a block of 100 bytes" + inStacks},
		{func() { h.Free(block(uintptr(unsafe.Pointer(&live[0]))-8, 8, false)) }, "it is not in a block, but next to one of 100 bytes" + inStacks},
	} {
		if got := panicOf(tt.do); !strings.Contains(got, tt.want) || !strings.HasPrefix(got, "freehold: Heap.") {
			t.Errorf("%s\nwant %s", got, tt.want)
		}
		h.check(t)
	}
	h.Free(live)
}

// Freed blocks are inaccessible until the quarantine has too many, or too many bytes of
// them. Then the one that was freed first is used first.
func TestQuarantine(t *testing.T) {
	eachGuard(t, func(t *testing.T) {
		guardAt(t, 1, 0)
		was := quarantineMax
		t.Cleanup(func() { quarantineMax = was })
		for blocks, bytes := range map[int]uintptr{10: 1 << 30, 1000: 10 * guardUnit()} {
			quarantineMax.blocks, quarantineMax.bytes = blocks, bytes
			h := newHeap(t, Options{})
			var first, b []byte
			seen := map[*byte]int{}
			for i := range 100 {
				b = alloc(t, h, 64)
				if i == 0 {
					first = b
				}
				if last, again := seen[&b[0]]; again != (i > 10) || again && last != i-11 {
					t.Fatalf("block %d is at the address of block %d: %v", i, last, again)
				}
				seen[&b[0]] = i
				h.Free(b)
				mustFault(t, first, 0)
			}
			if w := h.theGuards().waiting; w != (guardCount{10, 10 * int(guardUnit())}) {
				t.Errorf("%+v is in quarantine", w)
			}
			h.check(t)
		}
	})
}

// Under a limit, bookkeeping takes little of it, and the limit holds.
func TestGuardsUnderALimit(t *testing.T) {
	eachGuard(t, func(t *testing.T) {
		guardAt(t, 1, 0)
		h := newHeap(t, Options{MaxBytes: 8 << 20})
		for range 20 {
			var all [][]byte
			for {
				b, err := h.Alloc(1000, 8, false)
				if err != nil {
					break
				}
				all = append(all, b)
			}
			if st := h.Stats(); st.Guarded < 300 || st.Committed > 8<<20 {
				t.Fatalf("%+v", st)
			}
			for _, b := range all {
				h.Free(b)
			}
			h.check(t)
		}
		if st := h.Stats(); st.Metadata > 2<<20 {
			t.Errorf("%+v", st)
		}
	})
}

// The number of guards made of mappings has a bound. Blocks beyond it have no guard.
func TestMappedGuardsHaveABound(t *testing.T) {
	guardAt(t, 1, 0)
	defer refuse(vm.OpAdvise)()
	defer mappedGuards.Store(mappedGuards.Swap(maxMappedGuards - 1))
	h := newHeap(t, Options{})
	a, b := alloc(t, h, 64), alloc(t, h, 64)
	if st := h.Stats(); st.Guarded != 1 || st.GuardsSkipped != 1 {
		t.Errorf("%+v", st)
	}
	h.Free(a)
	c := alloc(t, h, 64)
	if st := h.Stats(); st.Guarded != 1 {
		t.Errorf("%+v", st)
	}
	h.Free(b)
	_ = c
	h.Close()
	if n := mappedGuards.Load(); n != maxMappedGuards-1 {
		t.Errorf("%d mapped guards after Close, want %d", n, maxMappedGuards-1)
	}
}

// Whatever call the system refuses, blocks are as usual, and guarded again later.
func TestGuardsWhereTheSystemRefuses(t *testing.T) {
	guardAt(t, 1, 0)
	for _, once := range []bool{true, false} {
		for n := 1; n < 40; n++ {
			h := newHeap(t, Options{})
			kept := alloc(t, h, 64)
			restore := vm.SetFault(vm.FailNth(n, once, syscall.ENOMEM))
			for _, size := range []int{10, 5000, 200000, 64, maxGuarded, maxGuarded, maxGuarded} {
				if b, err := h.Alloc(size, 8, true); err == nil {
					if !allSet(b, 0) {
						t.Errorf("call %d: size %d is not zero", n, size)
					}
					fill(b, 1)
					h.Free(b)
				}
			}
			restore()
			h.Free(kept)
			before := h.Stats().GuardedEver
			h.Free(alloc(t, h, 64))
			if st := h.Stats(); st.GuardedEver != before+1 || st.Blocks != 0 {
				t.Errorf("call %d: %+v", n, st)
			}
			h.Close()
		}
	}
}

func TestCallsOnGuardedBlocks(t *testing.T) {
	guardAt(t, 1, 0)
	h := newHeap(t, Options{})
	p := h.Calloc(10, 10)
	if n := h.UsableSize(p); n != 100 {
		t.Errorf("%d usable bytes", n)
	}
	q := h.ReallocPointer(p, 200)
	if n := h.UsableSize(q); n != 200 || uintptr(q)%mallocAlign != 0 {
		t.Errorf("%p has %d usable bytes", q, n)
	}
	mustFault(t, block(uintptr(p), 100, false), 0)
	h.FreePointer(q)
	mustFault(t, block(uintptr(q), 200, false), 0)

	b := alloc(t, h, 100)
	if r, ok := h.Resize(b, 100); !ok || &r[0] != &b[0] {
		t.Error("a block of the same size moved")
	}
	for _, size := range []int{99, 101, 10} {
		if _, ok := h.Resize(b, size); ok {
			t.Errorf("resized to %d in place", size)
		}
	}
	if r, ok := h.Resize(b, 0); !ok || len(r) != 0 {
		t.Error("not freed")
	}
	mustFault(t, b, 0)

	o := newLocalCache(h)
	defer o.Close()
	b, err := o.Alloc(50, 1, true)
	if err != nil || !h.Owns(b) {
		t.Fatal(err)
	}
	mustFault(t, b, 50)
	o.Free(b)
	mustFault(t, b, 0)
	if st := h.Stats(); st.Blocks != 0 || st.GuardedEver < 4 {
		t.Errorf("%+v", st)
	}
}

// After Close all guarded blocks fault, and another heap may have their addresses.
func TestCloseWithGuards(t *testing.T) {
	eachGuard(t, func(t *testing.T) {
		guardAt(t, 1, 0)
		mapped := mappedGuards.Load()
		for range 3 {
			h := newHeap(t, Options{})
			var all [][]byte
			for i := range 2000 {
				all = append(all, alloc(t, h, 8+i*4))
			}
			for _, b := range all[:1000] {
				h.Free(b)
			}
			h.check(t)
			h.Close()
			for _, b := range all {
				mustFault(t, b, 0)
			}
			if n := mappedGuards.Load(); n != mapped {
				t.Errorf("%d mapped guards, want %d", n, mapped)
			}
			SetGuardRate(0, 0)
			plain := newHeap(t, Options{})
			b := alloc(t, plain, 64<<20) // all of it is accessible
			fill(b, 1)
			plain.Close()
			SetGuardRate(1, 0)
		}
	})
}

func TestGuardsAllocateNothingOnTheGoHeap(t *testing.T) {
	guardAt(t, 1, 0)
	h := newHeap(t, Options{})
	if h.checks != nil {
		t.Skip("checks of blocks allocate")
	}
	f := func() {
		b, _ := h.Alloc(64, 8, false)
		h.Free(b)
	}
	f()
	if n := testing.AllocsPerRun(1000, f); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
