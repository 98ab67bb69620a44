package heap

import (
	"bytes"
	"errors"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

// fill copies, which takes less than a loop wherever each store is slow: under
// the race detector and in emulators.
func fill(b []byte, v byte) {
	if len(b) == 0 {
		return
	}
	b[0] = v
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

func allSet(b []byte, v byte) bool {
	return len(b) == 0 || b[0] == v && bytes.Equal(b[1:], b[:len(b)-1])
}

// Zeroed clears memory that was used before, and only trusts what is fresh.
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

// A hole in a span that was given back reads zero or is cleared.
func TestZeroedAfterHoles(t *testing.T) {
	if !makesHoles {
		t.Skip("this system has no holes")
	}
	h := newHeap(t, Options{})
	var live [][]byte
	for range 2000 {
		b := alloc(t, h, 1000)
		fill(b, 0xA5)
		live = append(live, b)
	}
	var kept [][]byte
	for i, b := range live {
		if i%50 == 0 {
			kept = append(kept, b)
		} else {
			h.Free(b)
		}
	}
	before := h.Stats()
	h.Trim()
	h.check(t)
	after := h.Stats()
	if after.Resident >= before.Resident/2 {
		t.Errorf("resident went from %d to %d with 1 block in 50 left", before.Resident, after.Resident)
	}
	for _, b := range kept {
		if !allSet(b, 0xA5) {
			t.Fatal("a survivor changed")
		}
	}
	for range 1900 {
		b, _ := h.Alloc(1000, 1, true)
		if !allSet(b, 0) {
			t.Fatal("not zero")
		}
		fill(b, 1)
	}
	for _, b := range kept {
		if !allSet(b, 0xA5) {
			t.Fatal("a survivor changed")
		}
	}
	h.check(t)
}

func TestNoGoHeapAllocations(t *testing.T) {
	h := newHeap(t, Options{})
	for _, size := range []int{8, 64, 1000, 32768, 100000, 3 << 20} {
		var live [100][]byte
		round := func() {
			for i := range live {
				live[i], _ = h.Alloc(size, 8, true)
			}
			for i := range live {
				h.Free(live[i])
			}
		}
		round()
		if n := testing.AllocsPerRun(20, round); n != 0 {
			t.Errorf("size %d: %v Go heap allocations in 100 pairs", size, n)
		}
	}
}

// The limit holds at every moment, under any number of goroutines, and the
// heap works on when memory has come back.
func TestLimitIsNeverPassed(t *testing.T) {
	const limit = 24 << 20
	h := newHeap(t, Options{MaxBytes: limit})
	done := make(chan bool)
	var watch, runs sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if st := h.Stats(); st.Committed > limit {
				t.Errorf("committed is %d", st.Committed)
				return
			}
			runtime.Gosched()
		}
	})
	var refused sync.Map
	for g := range 4 {
		runs.Go(func() {
			var live [][]byte
			for i := range 3000 {
				size := []int{100, 3000, 40000, 900000}[(i+g)%4]
				b, err := h.Alloc(size, 8, false)
				if err != nil {
					if !errors.Is(err, ErrOutOfMemory) || !strings.Contains(err.Error(), "limit of") {
						t.Error(err)
					}
					refused.Store(g, true)
					for _, b := range live {
						h.Free(b)
					}
					live = nil
					continue
				}
				fill(b[:min(len(b), 100)], byte(g))
				live = append(live, b)
			}
			for _, b := range live {
				if !allSet(b[:min(len(b), 100)], byte(g)) {
					t.Error("a block changed")
				}
				h.Free(b)
			}
		})
	}
	runs.Wait()
	close(done)
	watch.Wait()
	if _, ok := refused.Load(0); !ok {
		t.Error("the limit was never reached")
	}
	h.check(t)
	b, err := h.Alloc(limit-4<<20, 8, false)
	if err != nil {
		t.Errorf("after all is freed: %v", err)
	}
	h.Free(b)
}

// Memory that free pages or caches hold is given back before a limit refuses.
func TestLimitReclaimsFirst(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 8 << 20})
	var live [][]byte
	for range 6000 {
		live = append(live, alloc(t, h, 1000))
	}
	for _, b := range live {
		h.Free(b)
	}
	b, err := h.Alloc(7<<20, 8, false)
	if err != nil {
		t.Fatal(err)
	}
	h.Free(b)
}

func TestSizesThatNoAddressSpaceHas(t *testing.T) {
	h := newHeap(t, Options{})
	const maxInt = int(^uint(0) >> 1)
	for _, size := range []int{maxInt, maxInt - 100, maxInt / 2, maxInt/4*3 + 5} {
		for _, align := range []int{1, 1 << 20, maxInt/2 + 1} {
			if _, err := h.Alloc(size, align, false); !errors.Is(err, ErrOutOfMemory) {
				t.Errorf("Alloc(%d, %d): %v", size, align, err)
			}
		}
	}
	if _, err := h.Alloc(1, maxInt/2+1, false); !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("huge alignment: %v", err)
	}
	if p := h.Calloc(maxInt, maxInt); p != nil {
		t.Error("Calloc overflowed")
	}
	b := alloc(t, h, 100000)
	if _, ok := h.Resize(b, maxInt); ok {
		t.Error("Resize to the largest int")
	}
	h.Free(b)
	h.check(t)
}

func TestAlignments(t *testing.T) {
	h := newHeap(t, Options{})
	for align := 1; align <= 8<<20; align *= 2 {
		for _, size := range []int{1, 24, 100, 1000, 5000, 33000, 3 << 20} {
			b, err := h.Alloc(size, align, true)
			if err != nil {
				t.Fatal(err)
			}
			if addr := uintptr(unsafe.Pointer(&b[0])); addr%uintptr(align) != 0 || len(b) != size || cap(b) != size {
				t.Fatalf("Alloc(%d, %d) = %#x, %d, %d", size, align, addr, len(b), cap(b))
			}
			fill(b, 1)
			h.Free(b)
		}
	}
}

func TestResizeSmall(t *testing.T) {
	h := newHeap(t, Options{})
	tests := []struct {
		from, to int
		ok       bool
	}{
		{100, 112, true},  // to the end of its block
		{100, 113, false}, // beyond
		{100, 57, true},   // more than half of the block stays in use
		{100, 56, false},  // a copy saves half
		{100, 0, true},    // freed
		{32768, 32769, false},
		{40000, 32768, false}, // from a run to a class
		{40000, 49152, true},  // to the end of its pages
	}
	for _, tt := range tests {
		b := alloc(t, h, tt.from)
		fill(b, 7)
		r, ok := h.Resize(b, tt.to)
		if ok != tt.ok {
			t.Errorf("%d to %d: %v", tt.from, tt.to, ok)
		}
		if !ok {
			r = b
		} else if len(r) != tt.to || cap(r) != tt.to {
			t.Errorf("%d to %d: len %d, cap %d", tt.from, tt.to, len(r), cap(r))
		}
		if !allSet(r[:min(len(r), tt.from)], 7) {
			t.Errorf("%d to %d: contents changed", tt.from, tt.to)
		}
		h.Free(r)
	}
	if r, ok := h.Resize(nil, 0); !ok || r == nil {
		t.Errorf("Resize(nil, 0) = %v, %v", r, ok)
	}
	if _, ok := h.Resize(nil, 10); ok {
		t.Error("Resize(nil, 10) succeeded")
	}
}

// A large block grows over what is free behind it, into addresses that nobody
// had, or by moving its pages; never by a copy on Linux.
func TestResizeLarge(t *testing.T) {
	h := newHeap(t, Options{})
	b, err := h.Alloc(1<<20, 4096, false)
	if err != nil {
		t.Fatal(err)
	}
	fill(b, 1)
	var blockers [][]byte
	size, top := 1<<20, 256<<20
	switch {
	case vm.GoBacked:
		top = 32 << 20
	case testing.Short():
		top = 64 << 20
	}
	for step := byte(2); size < top; step++ {
		blockers = append(blockers, alloc(t, h, 50000)) // now and then it stands in the way
		old := size
		size *= 2
		r, ok := h.Resize(b, size)
		if !ok {
			if runtime.GOOS == "linux" && !vm.GoBacked {
				t.Fatalf("to %d: needs a copy", size)
			}
			if r, err = h.Alloc(size, 4096, false); err != nil {
				t.Fatal(err)
			}
			copy(r, b)
			h.Free(b)
		}
		b = r
		if uintptr(unsafe.Pointer(&b[0]))%4096 != 0 {
			t.Fatalf("to %d: the alignment is gone", size)
		}
		for at := 0; at < old; at += 4096 {
			want := byte(1)
			for edge := 1 << 20; edge <= at; edge *= 2 {
				want++
			}
			if b[at] != want || b[at+4095] != want {
				t.Fatalf("to %d: byte %d is %d, want %d", size, at, b[at], want)
			}
		}
		fill(b[old:], step)
		h.check(t)
	}
	if st := h.Stats(); st.LargeBytes < size || st.LargeBytes > size+2<<20 {
		t.Errorf("%+v", st)
	}
	for size > 100<<10 {
		size /= 3
		r, ok := h.Resize(b, size)
		if !ok || !allSet(r[:min(size, 1<<20)], 1) {
			t.Fatalf("down to %d: %v", size, ok)
		}
		b = r
		h.check(t)
	}
	h.Free(b)
	for _, b := range blockers {
		h.Free(b)
	}
	h.Trim()
	if st := h.Stats(); st.Committed != st.Metadata {
		t.Errorf("after Trim: %+v", st)
	}
	h.check(t)
}

// The low-water mark: what was free during a whole tick goes, what was needed
// in it stays.
func TestTickReturnsWhatWasNotNeeded(t *testing.T) {
	h := newHeap(t, Options{})
	idle, busy := alloc(t, h, 10<<20), alloc(t, h, 1<<20)
	h.Free(idle)
	h.Tick() // the memory was in use for a part of this one
	if st := h.Stats(); st.Resident < 11<<20 {
		t.Errorf("after a tick in which it was in use: %+v", st)
	}
	h.Free(busy)
	busy = alloc(t, h, 1<<20)
	h.Tick()
	if st := h.Stats(); st.Resident > 3<<20 {
		t.Errorf("after a tick without use: %+v", st)
	}
	h.Free(busy)
	h.check(t)
}

// Small blocks that were freed leave the heap without a Trim, caches included.
func TestTicksEmptyAnIdleHeap(t *testing.T) {
	h := newHeap(t, Options{})
	var live [][]byte
	for i := range 20000 {
		live = append(live, alloc(t, h, 1+i%2000))
	}
	for _, b := range live {
		h.Free(b)
	}
	for range 2 * ticksBetweenDrain {
		h.Tick()
	}
	h.check(t)
	if st := h.Stats(); st.Active != 0 || st.Committed != st.Metadata || st.Metadata > 1<<20 {
		t.Errorf("%+v", st)
	}
}

// A heap at rest has no timer; one with memory to return has.
func TestTimerRunsOnlyWhenThereIsWork(t *testing.T) {
	h := newHeap(t, Options{Decay: 1 << 50}) // it never fires here
	if h.pages.alarm.set() {
		t.Error("awake before the first block")
	}
	h.Free(alloc(t, h, 1<<20))
	if !h.pages.alarm.set() {
		t.Error("asleep with memory to return")
	}
	for range 2 * ticksBetweenDrain {
		h.Tick()
	}
	if h.pages.alarm.set() {
		t.Error("awake with nothing to do")
	}
	h.Free(alloc(t, h, 100))
	if !h.pages.alarm.set() {
		t.Error("asleep with blocks in the caches")
	}
}

func TestClosedMemoryFaultsAndIsRecycled(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 1<<20)
	fill(b, 9)
	h.Close()
	if !vm.GoBacked {
		fault := func() (addr any) {
			defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
			defer func() { addr = recover() }()
			return b[5]
		}()
		if _, ok := fault.(error); !ok {
			t.Errorf("reading closed memory: %v", fault)
		}
	}
	next := newHeap(t, Options{})
	for range 100 {
		c, err := next.Alloc(1<<20, 1, true)
		if err != nil || !allSet(c, 0) {
			t.Fatalf("recycled memory: %v", err)
		}
		fill(c, 3)
	}
}

func TestManyHeapsRecycleAddresses(t *testing.T) {
	use := func() {
		h := newHeap(t, Options{})
		alloc(t, h, 100)
		alloc(t, h, 9<<20)
		h.Close()
	}
	use()
	before := addresses.first.used.Load()
	for range 200 {
		use()
	}
	if after := addresses.first.used.Load(); after > before {
		t.Errorf("%d heaps in turn took %d bytes of addresses more", 200, after-before)
	}
}

func TestProcessorsComeAndGo(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	h := newHeap(t, Options{})
	for _, n := range []int{8, 1, 4, 70, 2} { // 70 is more than the table has
		runtime.GOMAXPROCS(n)
		var wg sync.WaitGroup
		for range 2 * n {
			wg.Go(func() {
				for i := range 2000 {
					b := alloc(t, h, 1+i%300)
					b[0] = 1
					if i%100 == 0 {
						runtime.Gosched()
					}
					h.Free(b)
				}
			})
		}
		wg.Wait()
		if st := h.Stats(); st.Allocated != 0 {
			t.Errorf("GOMAXPROCS=%d: %d bytes in use", n, st.Allocated)
		}
	}
	h.Trim()
	h.check(t)
	if st := h.Stats(); st.Active != 0 {
		t.Errorf("%+v", st)
	}
}

func TestStats(t *testing.T) {
	h := newHeap(t, Options{Name: "figures", MaxBytes: 1 << 30})
	if st := h.Stats(); st.Committed != 0 || st.Name != "figures" || st.MaxBytes != 1<<30 || len(st.Classes) != 0 {
		t.Errorf("empty: %+v", st)
	}
	var live [][]byte
	for range 1000 {
		live = append(live, alloc(t, h, 100))
	}
	live = append(live, alloc(t, h, 100000))
	st := h.Stats()
	if st.Blocks != 1001 || st.Allocated != 1000*112+106496 || st.LargeBlocks != 1 || st.LargeBytes != 106496 {
		t.Errorf("%+v", st)
	}
	if len(st.Classes) != 1 || st.Classes[0].Size != 112 || st.Classes[0].Blocks != 1000 {
		t.Errorf("%+v", st.Classes)
	}
	if st.Active < st.Allocated || st.Resident < st.Active+st.Metadata || st.Retained == 0 {
		t.Errorf("%+v", st)
	}
	for _, b := range live {
		h.Free(b)
	}
	if st := h.Stats(); st.Blocks != 0 || st.Allocated != 0 {
		t.Errorf("all freed: %+v", st)
	}
}

func TestGoodSize(t *testing.T) {
	h := newHeap(t, Options{})
	for _, tt := range [][2]int{{-5, 0}, {0, 0}, {1, 8}, {100, 112}, {32768, 32768}, {32769, 40960}, {1 << 20, 1 << 20}} {
		if got := h.GoodSize(tt[0]); got != tt[1] {
			t.Errorf("GoodSize(%d) = %d, want %d", tt[0], got, tt[1])
		}
	}
}

func TestPointers(t *testing.T) {
	h := newHeap(t, Options{})
	for _, size := range []int{0, 1, 16, 100, 40000, 2 << 20} {
		p := h.Malloc(size)
		if uintptr(p)%mallocAlign != 0 || h.UsableSize(p) < max(size, 1) {
			t.Fatalf("Malloc(%d) = %p, usable %d", size, p, h.UsableSize(p))
		}
		whole := unsafe.Slice((*byte)(p), h.UsableSize(p))
		fill(whole, 5)
		q := h.ReallocPointer(p, size*3+200)
		if !allSet(unsafe.Slice((*byte)(q), len(whole)), 5) {
			t.Fatalf("size %d: ReallocPointer lost contents", size)
		}
		h.FreePointer(q)
		z := h.Calloc(2, size)
		if !allSet(unsafe.Slice((*byte)(z), 2*size), 0) {
			t.Fatalf("Calloc(2, %d) is not zero", size)
		}
		h.FreePointer(z)
	}
	h.FreePointer(nil)
	if h.UsableSize(nil) != 0 {
		t.Error("UsableSize(nil)")
	}
	p := h.ReallocPointer(nil, 10)
	h.FreePointer(h.ReallocPointer(p, 0))
	if st := h.Stats(); st.Blocks != 0 {
		t.Errorf("%+v", st)
	}
}

func TestOwns(t *testing.T) {
	h, other := newHeap(t, Options{}), newHeap(t, Options{})
	small, large := alloc(t, h, 10), alloc(t, h, 1<<20)
	for i, b := range [][]byte{small, large, small[3:], large[70000:]} {
		if !h.Owns(b) || other.Owns(b) {
			t.Errorf("slice %d: Owns is %v, the other's %v", i, h.Owns(b), other.Owns(b))
		}
	}
	if h.Owns(make([]byte, 10)) || h.Owns(nil) {
		t.Error("owns Go memory or nil")
	}
}

// The counts of what has passed cost the fast path nothing: they are of slow
// calls, refusals, and what went back to the system.
func TestStatsCountWhatHasPassed(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 8 << 20})
	small := alloc(t, h, 64)
	for range 100 {
		h.Free(small)
		small = alloc(t, h, 64)
	}
	large := alloc(t, h, 1<<20)
	clear(large)
	h.Free(large)
	st := h.Stats()
	// A miss of the small class, the large block, and in some builds a miss more.
	if st.SlowAllocs-2 > 2 || st.SlowFrees-1 > 2 || st.Refusals != 0 || st.PurgedBytes != 0 {
		t.Errorf("%+v", st)
	}
	if _, err := h.Alloc(16<<20, 8, false); err == nil {
		t.Fatal("the limit was passed")
	}
	h.Free(small)
	h.Trim()
	st = h.Stats()
	if want := uint64(1<<20 + classes[classOf[64/8]].pages*pageBytes); st.Refusals != 1 || st.PurgedBytes != want {
		t.Errorf("%d refusals and %d bytes given back, want 1 and %d", st.Refusals, st.PurgedBytes, want)
	}
}

// Neither the fast paths, the slow ones nor large blocks allocate Go memory.
func TestNothingIsAllocatedOnTheGoHeap(t *testing.T) {
	h := newHeap(t, Options{})
	var small [4000][]byte
	use := func() {
		for i := range small {
			small[i] = alloc(t, h, 64)
		}
		for _, b := range small {
			h.Free(b)
		}
		h.Free(alloc(t, h, 100<<10))
	}
	use()
	if n := testing.AllocsPerRun(20, use); n > 0 {
		t.Errorf("%v Go allocations in 4000 small blocks and a large one", n)
	}
}
