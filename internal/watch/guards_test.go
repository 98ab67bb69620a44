// Guards: what an access finds, and what becomes of freed blocks and of their runs.

package watch_test

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/heap"
	"github.com/freehold-go/freehold/internal/vm"
	"github.com/freehold-go/freehold/internal/watch"
)

// eachGuard runs a test with the guards of the kernel, where other blocks have red zones, and
// with mappings.
func eachGuard(t *testing.T, test func(t *testing.T)) {
	t.Run("guards", test)
	if watchesZones {
		t.Run("zones", func(t *testing.T) {
			keepFreed(t, 1<<20)
			test(t)
		})
	}
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

// A guarded block reads zero. All of it is accessible. Behind it only the padding of its
// alignment is accessible, and after Free nothing is.
func TestGuardedBlockEndsAtAGuard(t *testing.T) {
	eachGuard(t, func(t *testing.T) {
		guardAt(t, 1, 0)
		h := newHeap(t, Options{})
		for round := range 3 {
			for _, size := range []int{1, 7, 8, 64, 100, 4095, 4096, 4097, 8192, 32 << 10, 32<<10 + 1, 300000, watch.MaxGuarded} {
				for _, align := range []int{1, 8, 16, 64, 4096} {
					b, err := h.Alloc(size, align, false)
					if err != nil || uintptr(unsafe.Pointer(&b[0]))%uintptr(align) != 0 || len(b) != size || cap(b) != size {
						t.Fatalf("size %d, align %d: %p, %d and %d bytes, %v", size, align, b, len(b), cap(b), err)
					}
					if !allSet(b, 0) {
						t.Errorf("size %d, align %d: not zero in round %d", size, align, round)
					}
					fill(b, 0xFF)
					mustFault(t, b, int(vm.RoundUp(uintptr(size), uintptr(align))))
					if st := h.Stats(); st.Guarded != 1 || st.Blocks != 1 || watch.Zone() == 0 && st.Allocated != h.GoodSize(size) || (size > 32<<10) != (st.LargeBlocks == 1) {
						t.Errorf("size %d: %+v", size, st)
					}
					check(t, h)
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
	for i, req := range [][2]int{{watch.MaxGuarded + 1, 8}, {8, int(2 * vm.PageBytes())}} {
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

// A heap of whole pages has no guards.
func TestHeapsWithoutGuards(t *testing.T) {
	guardAt(t, 1, 0)
	for _, o := range []Options{{WholePages: true}} {
		h := newHeap(t, o)
		for _, size := range []int{1, 1000, 100000} {
			h.Free(alloc(t, h, size))
		}
		if st := h.Stats(); st.GuardedEver != 0 {
			t.Errorf("%+v: %d blocks are guarded", o, st.GuardedEver)
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

// Freed blocks are inaccessible until the quarantine has too many, or too many bytes of
// them. Then the one that was freed first is used first.
func TestQuarantine(t *testing.T) {
	eachGuard(t, func(t *testing.T) {
		guardAt(t, 1, 0)
		for _, tt := range []struct {
			blocks   int
			bytes    uintptr
			maxBytes int
		}{
			{10, 1 << 30, 0}, {10, 1 << 30, math.MaxInt}, {1000, 10 * watch.GuardUnit(), 0},
		} {
			keepGuarded(t, tt.blocks, tt.bytes)
			h := newHeap(t, Options{MaxBytes: tt.maxBytes})
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
			if w := h.Watch().Runs().Waiting; w.Blocks != 10 || w.Bytes != 10*int(watch.GuardUnit()) {
				t.Errorf("%+v is in quarantine", w)
			}
			check(t, h)
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
			check(t, h)
		}
		if st := h.Stats(); st.Metadata > 2<<20 {
			t.Errorf("%+v", st)
		}
	})
}

// The number of guards made of mappings has a bound. Blocks beyond it have no guard.
func TestMappedGuardsHaveABound(t *testing.T) {
	guardAt(t, 1, 0)
	defer refuseOps(vm.OpAdvise)()
	defer watch.MappedGuards.Store(watch.MappedGuards.Swap(watch.MaxMappedGuards - 1))
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
	if n := watch.MappedGuards.Load(); n != watch.MaxMappedGuards-1 {
		t.Errorf("%d mapped guards after Close, want %d", n, watch.MaxMappedGuards-1)
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
			for _, size := range []int{10, 5000, 200000, 64, watch.MaxGuarded, watch.MaxGuarded, watch.MaxGuarded} {
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

// After Close all guarded blocks fault, and another heap may have their addresses.
func TestCloseWithGuards(t *testing.T) {
	eachGuard(t, func(t *testing.T) {
		guardAt(t, 1, 0)
		mapped := watch.MappedGuards.Load()
		for range 3 {
			h := newHeap(t, Options{})
			var all [][]byte
			for i := range 2000 {
				all = append(all, alloc(t, h, 8+i*4))
			}
			for _, b := range all[:1000] {
				h.Free(b)
			}
			check(t, h)
			h.Close()
			for _, b := range all {
				mustFault(t, b, 0)
			}
			if n := watch.MappedGuards.Load(); n != mapped {
				t.Errorf("%d mapped guards, want %d", n, mapped)
			}
			watch.SetGuardRate(0, 0)
			plain := newHeap(t, Options{})
			b := alloc(t, plain, 64<<20) // all of it is accessible
			fill(b, 1)
			plain.Close()
			watch.SetGuardRate(1, 0)
		}
	})
}

// A freed block whose pages stay accessible, since the system refuses, is not handed out
// again: nothing would catch the use of it that was meant to fault.
func TestGuardedBlockThatStaysAccessible(t *testing.T) {
	guardAt(t, 1, 0)
	keepGuarded(t, 0, 0)
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
	keepGuarded(t, 0, 0)
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
	check(t, h)
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

// Guarded blocks count as others do: the large ones among the large ones, and none after
// Close.
func TestStatsOfGuardedBlocks(t *testing.T) {
	guardAt(t, 1, 0)
	h := newHeap(t, Options{})
	small, large := alloc(t, h, 64), alloc(t, h, 100_000)
	st := h.Stats()
	if want := h.GoodSize(100_000); st.Blocks != 2 || st.LargeBlocks != 1 || st.LargeBytes != want {
		t.Errorf("%+v, want a large block of %d bytes", st, want)
	}
	h.Free(large)
	if st := h.Stats(); st.Blocks != 1 || st.LargeBlocks != 0 || st.LargeBytes != 0 {
		t.Errorf("%+v", st)
	}
	_ = small
	h.Close()
	if g := h.Watch().Runs(); len(g.Segments) > 0 || g.Uncarved.Size != 0 || g.Waiting.Blocks+g.Live.Blocks+g.Large.Blocks+g.Live.Bytes+g.Large.Bytes != 0 || g.Idle {
		t.Errorf("after Close there are %+v", g)
	}
}

// A run that the system does not open costs nothing, and is the next one that is tried.
func TestRunsThatAreNotOpened(t *testing.T) {
	eachGuard(t, func(t *testing.T) {
		guardAt(t, 1, 0)
		h := newHeap(t, Options{})
		for range 2 {
			h.Free(alloc(t, h, 64))
		}
		runs, before := h.Watch().Runs(), h.Stats()
		uncarved := runs.Uncarved
		const calls = 2000 // more than a segment has runs
		restore := vm.SetFault(func(op vm.Op) error {
			if op == vm.OpAdvise || op == vm.OpCommit {
				return syscall.ENOMEM
			}
			return nil
		})
		for range calls {
			h.Free(alloc(t, h, 64)) // an ordinary block, which is cached
		}
		restore()
		st := h.Stats()
		if st.GuardedEver != before.GuardedEver || st.GuardsSkipped != calls {
			t.Errorf("%d guarded and %d skipped, want %d and %d", st.GuardedEver, st.GuardsSkipped, before.GuardedEver, calls)
		}
		uncarved.Base, uncarved.Size = uncarved.Base+watch.GuardUnit(), uncarved.Size-watch.GuardUnit()
		if g := h.Watch().Runs(); len(g.Segments) != len(runs.Segments) || g.Uncarved != uncarved {
			t.Errorf("%d segments, and %+v is left, want %d and %+v", len(g.Segments), g.Uncarved, len(runs.Segments), uncarved)
		}
		check(t, h)
		h.Trim()
		if st = h.Stats(); st.Blocks != 0 || st.Committed != st.Metadata {
			t.Errorf("all is free: %+v", st)
		}
		h.Free(alloc(t, h, 64))
		if n := h.Stats().GuardedEver; n != before.GuardedEver+1 {
			t.Errorf("%d guarded in the end, want %d", n, before.GuardedEver+1)
		}
	})
}

// refuseGuardSegments has the system refuse to make a new segment inaccessible: by guards,
// which are tried first, and by revoking it. Calls of others, such as purges of another test's
// heap, go on.
func refuseGuardSegments() (restore func()) {
	return vm.SetFault(func(op vm.Op) error {
		if (op == vm.OpAdvise || op == vm.OpRevoke) && isWithin("pages.closeSegment") {
			return syscall.ENOMEM
		}
		return nil
	})
}

// isWithin reports whether a function is among the callers.
func isWithin(function string) bool {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, function) {
			return true
		}
		if !more {
			return false
		}
	}
}

// Where there is no new segment, blocks leave the quarantine before it is full.
func TestQuarantineEndsBeforeGuardsDo(t *testing.T) {
	if !vm.HolesReadZero {
		t.Skip("a new segment is inaccessible as it comes")
	}
	eachGuard(t, func(t *testing.T) {
		guardAt(t, 1, 0)
		h := newHeap(t, Options{})
		h.Free(alloc(t, h, 64))
		w, runs := h.Watch(), 1
		for ; w.Uncarved().Size > 0; runs++ {
			h.Free(alloc(t, h, 64))
		}
		if g := w.Runs(); g.Waiting.Blocks != runs || len(g.Segments) != 1 {
			t.Fatalf("%+v is in quarantine, of %d runs in %d segments", g.Waiting, runs, len(g.Segments))
		}
		defer refuseGuardSegments()()
		var all [][]byte
		for range runs {
			all = append(all, alloc(t, h, 64))
		}
		if st := h.Stats(); st.Guarded != runs || st.GuardsSkipped != 0 {
			t.Errorf("%d guarded and %d skipped, want %d", st.Guarded, st.GuardsSkipped, runs)
		}
		last := alloc(t, h, 64)
		if st, n := h.Stats(), len(w.Runs().Segments); st.Guarded != runs || st.GuardsSkipped != 1 || n != 1 {
			t.Errorf("%d guarded and %d skipped of %d segments, want %d and 1 of 1", st.Guarded, st.GuardsSkipped, n, runs)
		}
		for _, b := range append(all, last) {
			h.Free(b)
		}
	})
}

// Where no segment can be added, runs leave the quarantine until one has the length.
func TestRunsOfOtherLengthsLeaveTheQuarantine(t *testing.T) {
	if !vm.HolesReadZero {
		t.Skip("a new segment is inaccessible as it comes")
	}
	guardAt(t, 1, 0)
	h := newHeap(t, Options{})
	short, long := alloc(t, h, 64), alloc(t, h, int(2*watch.GuardUnit()))
	for h.Watch().Uncarved().Size > 0 {
		alloc(t, h, 64)
	}
	defer refuseGuardSegments()()
	h.Free(short)
	h.Free(long)
	if again := alloc(t, h, len(long)); addrOf(again) != addrOf(long) {
		t.Errorf("a block at %p, want %p; %d skipped", again, long, h.Stats().GuardsSkipped)
	}
}

// Of runs that leave the quarantine together, the one that waited longest is used first.
func TestIdleRunsAreUsedInOrder(t *testing.T) {
	guardAt(t, 1, 0)
	h := newHeap(t, Options{})
	var all [5][]byte
	for i := range all {
		all[i] = alloc(t, h, 64)
	}
	freed := []int{2, 0, 3, 1, 4}
	for at, i := range freed {
		if at == len(freed)-1 {
			keepGuarded(t, 0, 0) // all leave
		}
		h.Free(all[i])
	}
	for at, i := range freed {
		b := alloc(t, h, 64)
		defer h.Free(b)
		if addrOf(b) != addrOf(all[i]) {
			t.Errorf("use %d is of the run at %#x, want %#x", at, addrOf(b), addrOf(all[i]))
		}
	}
}

// Guarded blocks count among the allocations and frees that no cache serves.
func TestTrafficOfGuardedBlocks(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one cache of a processor
	guardAt(t, 1, 0)
	h := newHeap(t, Options{})
	h.Free(alloc(t, h, 64)) // fills the cache
	before := h.Stats()
	for range 10 {
		h.Free(alloc(t, h, 64))
	}
	st := h.Stats()
	if allocs, frees := st.SlowAllocs-before.SlowAllocs, st.SlowFrees-before.SlowFrees; allocs != 10 || frees != 10 {
		t.Errorf("%d allocations and %d frees, want 10", allocs, frees)
	}
}

// The page in front of a guarded block's page is inaccessible. This holds for a segment's first
// block too, because ordinary memory may be in front of the segment.
func TestInFrontOfASegmentsFirstBlocks(t *testing.T) {
	eachGuard(t, func(t *testing.T) {
		guardAt(t, 1, 0)
		h := newHeap(t, Options{})
		for i := range 3 {
			b := alloc(t, h, 64)
			if segment := h.Watch().Runs().Segments[0]; addrOf(b) < segment+watch.GuardUnit() {
				t.Errorf("block %d is in the first pages of the segment", i)
			}
			mustFault(t, b, -1-int(addrOf(b)%vm.PageBytes()))
		}
	})
}

// Where there is no segment for guards, the blocks are ordinary ones.
func TestGuardSegmentThatTheLimitRefuses(t *testing.T) {
	guardAt(t, 1, 0)
	watch.SetGuardRate(0, 0)
	h := newHeap(t, Options{MaxBytes: 64 << 20})
	alloc(t, h, 64) // so that there is a span with room
	watch.SetGuardRate(1, 0)
	p := h.Watch().Pages()
	p.MaxBytes = p.Figures().Committed
	for range 3 {
		h.Free(alloc(t, h, 64))
	}
	if st := h.Stats(); st.GuardedEver != 0 || st.GuardsSkipped != 3 {
		t.Errorf("%d guarded and %d skipped, want 0 and 3", st.GuardedEver, st.GuardsSkipped)
	}
	p.MaxBytes = 64 << 20
	h.Free(alloc(t, h, 64))
	if st := h.Stats(); st.GuardedEver != 1 {
		t.Errorf("%d guarded where the limit has room", st.GuardedEver)
	}
	h.Close()
	if b := h.Watch().NewGuarded(64, 8); b != nil {
		t.Error("a closed heap hands out a block")
	}
	if st := h.Stats(); st.Retained != 0 || len(h.Watch().Runs().Segments) != 0 {
		t.Errorf("a closed heap takes addresses: %+v", st)
	}
}

// Goroutines that share a heap free each other's guarded blocks, while others are not
// guarded and the rate changes.
func TestGuardsAtOnce(t *testing.T) { eachGuard(t, testGuardsAtOnce) }

func testGuardsAtOnce(t *testing.T) {
	guardAt(t, 3, 0)
	h := newHeap(t, Options{})
	blocks := make(chan []byte, 64)
	var makers, takers sync.WaitGroup
	for i := range 4 {
		makers.Go(func() {
			for j := range 500 {
				b, err := h.Alloc(1+(i*977+j*131)%9000, 8, true)
				if err != nil || !allSet(b, 0) {
					t.Errorf("%d bytes: %v", len(b), err)
					return
				}
				fill(b, byte(len(b)))
				blocks <- b
				if j%100 == 0 {
					watch.SetGuardRate(1+j/100, 0)
				}
			}
		})
		takers.Go(func() {
			for b := range blocks {
				if !allSet(b, byte(len(b))) {
					t.Errorf("a block of %d bytes was changed", len(b))
				}
				h.Free(b)
			}
		})
	}
	makers.Wait()
	close(blocks)
	takers.Wait()
	check(t, h)
	if st := h.Stats(); st.Blocks != 0 || st.GuardedEver == 0 {
		t.Errorf("%+v", st)
	}
}

// A guarded block whose surroundings were written stays live, for samples too.
func TestSampleOfAGuardedBlockThatWasWrittenAround(t *testing.T) {
	sampleAt(t, 1)
	guardAt(t, 1, 0)
	h := newHeap(t, Options{Name: nameOf(t)})
	b := allocHere(h, 61) // at a multiple of 8, so 3 bytes in front of the guard
	heap.Tag(b, "tag")
	behind(b, 1)[0] = 1
	wantTagged := func(want watch.Usage) {
		t.Helper()
		if u := usage(nameOf(t))["tag"]; fmt.Sprint(u) != fmt.Sprint(want) {
			t.Errorf("%+v, want %+v", u, want)
		}
	}
	mustPanic(t, func() { h.Free(b) }, "1 byte past the end of a block of 61 bytes")
	wantTagged(watch.Usage{AllocObjects: 1, AllocBytes: 61})
	h.Free(b)
	wantTagged(watch.Usage{AllocObjects: 1, AllocBytes: 61, FreeObjects: 1, FreeBytes: 61})
	check(t, h)
}
