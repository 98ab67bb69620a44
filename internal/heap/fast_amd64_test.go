//go:build !race && !freehold_portable && !asan

package heap

import (
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/small"
	"github.com/freehold-go/freehold/internal/test/pintest"
	"github.com/freehold-go/freehold/internal/vm"
	"github.com/freehold-go/freehold/internal/watch"
)

// Functions in Go are called if and only if assembly cannot run.
func TestAssemblyRunsIfItCan(t *testing.T) {
	if inGo := Fast.Free == closureOf(inGo.free); inGo == pin.AssemblyRuns() {
		t.Errorf("functions in Go run: %t; assembly can: %t", inGo, !inGo)
	}
}

func TestSlotsBeyondTheFirst(t *testing.T) {
	pintest.SlotsBeyondTheFirst(t, func(miss func(call string)) pintest.Slots {
		const size = 64
		class := small.ClassFor(size, 8)
		h := newHeap(t, Options{})
		was := slow
		t.Cleanup(func() { slow = was })
		slow.alloc = func(*Heap, int, int, bool) ([]byte, error) { miss("alloc"); return nil, nil }
		slow.malloc = func(*Heap, int) unsafe.Pointer { miss("malloc"); return nil }
		slow.free = func(*Heap, []byte) { miss("free") }
		slow.freePointer = func(*Heap, unsafe.Pointer) { miss("freePointer") }
		return pintest.Slots{
			Fill: func() {
				if b, err := was.alloc(h, size, 8, false); err == nil {
					was.free(h, b)
				}
			},
			Serve: func(slot int) bool {
				c := h.caches.Value(slot)
				if e, _ := c.Peek(class); e.Addr == 0 {
					return false
				}
				if b, _ := idle.alloc(h, size, 8, false); b != nil {
					h.Free(b)
				}
				if p := idle.malloc(h, size); p != nil {
					h.FreePointer(p)
				}
				left := c.left
				c.left = 1 << 40 // no sample is due
				if p := counting.malloc(h, size); p != nil {
					h.FreePointer(p)
				}
				if b, _ := counting.alloc(h, size, 8, false); b != nil {
					h.FreePointer(unsafe.Pointer(&b[0]))
				}
				c.left = left
				return true
			},
		}
	})
}

// The assembly uses both magazines of a class, and leaves them whole where it goes on in Go.
func TestAssemblySwapsMagazines(t *testing.T) {
	if !pin.AssemblyRuns() {
		t.Skip("there is no assembly")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so the heap has one cache
	h := newHeap(t, Options{Decay: never})
	ofHeap := func() *cache { return h.caches.Value(0) }
	alloc := func(f *functions, zero bool) []byte { return f.allocDirty(t, h, 64, 8, zero) }
	t.Run("heap", func(t *testing.T) {
		testSwaps(t, ofHeap, alloc, func(b []byte) { idle.free(h, b) })
	})
	t.Run("pointers", func(t *testing.T) {
		malloc := func(f *functions, zero bool) []byte {
			if zero { // there is no such Malloc
				return alloc(f, zero)
			}
			return unsafe.Slice((*byte)(f.malloc(h, 64)), 64)
		}
		testSwaps(t, ofHeap, malloc, func(b []byte) { idle.freePointer(h, unsafe.Pointer(&b[0])) })
	})
}

// testSwaps tests functions that allocate 64 bytes from a cache and free them to it.
func testSwaps(t *testing.T, of func() *cache, alloc func(f *functions, zero bool) []byte, free func(b []byte)) {
	class := small.ClassFor(64, 8)
	blocks := make([][]byte, 2*batch) // as many as fit
	half := len(blocks) / 2
	take := func(f *functions, from, to int) {
		for i := range blocks[from:to] {
			blocks[from+i] = alloc(f, false)
		}
	}
	back := func(from, to int) {
		for _, b := range blocks[from:to] {
			fill(b, 0xAA)
			free(b)
		}
	}
	take(&idle, 0, len(blocks))
	back(0, len(blocks))
	c := of()
	calls := countInGo(t)

	for _, f := range []*functions{&idle, &counting} {
		for n := half; n < half+3; n++ {
			c.left = 1 << 40 // no sample is due
			take(f, 0, n)
			back(n-3, n)
			take(f, n-3, len(blocks))
			counted := int64(len(blocks)+3) * (64 + watch.Countdown.Extra.Load())
			if f == &idle {
				counted = 0
			}
			back(0, len(blocks))
			if err := c.Verify(func(uintptr) {}); err != nil {
				t.Fatal(err)
			}
			if *calls != 0 || c.left != 1<<40-counted {
				t.Fatalf("%d calls went on in Go; %d bytes counted, want %d", *calls, 1<<40-c.left, counted)
			}
		}
	}

	// What is on top decides.
	for _, tt := range []struct {
		taken  int // before the block on top, of which
		status uint16
		calls  int
		first  byte // of the block if it is zeroed
	}{
		{half, small.FreeDirty, 0, 0},
		{half, small.FreeZero, 0, 0xAA}, // as it is
		{half - 1, small.FreeZero, 0, 0xAA},
		{half - 1, 64, 1, 0xAA}, // freed twice at once: Go names it
		{half, 64, 1, 0xAA},
	} {
		take(&idle, 0, tt.taken)
		e, _ := c.Peek(class)
		if e.Addr == 0 {
			spare := *(*uintptr)(unsafe.Add(unsafe.Pointer(c), small.SpareTops+uintptr(class)*unsafe.Sizeof(uintptr(0))))
			e = (*small.Entry)(vm.Pointer(spare - unsafe.Sizeof(small.Entry{})))
		}
		*small.StatusAt(e.Status) = tt.status
		before := *c
		*calls = 0
		var b []byte
		panicked := panicOf(func() { b = alloc(&idle, true) })
		if *calls != tt.calls || (panicked == "") != (tt.calls == 0) || *(*byte)(vm.Pointer(e.Addr)) != tt.first {
			t.Errorf("%+v: %d calls went on in Go, panic %q, byte %#x", tt, *calls, panicked, *(*byte)(vm.Pointer(e.Addr)))
		}
		if panicked == "" {
			blocks[tt.taken] = b
		} else {
			*c = before
			*small.StatusAt(e.Status) = small.FreeDirty
			blocks[tt.taken] = alloc(&idle, false)
		}
		take(&idle, tt.taken+1, len(blocks))
		back(0, len(blocks))
	}

	take(&idle, 0, half)
	c.left = 0 // a sample is due with the first block of the other magazine
	*calls = 0
	take(&counting, half, half+1)
	if *calls != 1 {
		t.Error("no sample was due")
	}
	take(&idle, half+1, len(blocks))
	seen := map[uintptr]bool{}
	for _, b := range blocks {
		seen[small.AddrOf(b)] = true
	}
	if len(seen) != len(blocks) || seen[0] {
		t.Error("a block was handed out twice, or not at all")
	}
	*calls = 0
	blocks = append(blocks, alloc(&idle, false)) // both magazines are empty
	inAlloc := *calls
	back(0, len(blocks))
	if inAlloc != 1 || *calls == 1 {
		t.Errorf("%d calls went on in Go with both magazines empty, %d with both full", inAlloc, *calls-inAlloc)
	}
	if err := c.Verify(func(uintptr) {}); err != nil {
		t.Error(err)
	}
}

// The assembly frees a large block to the kept runs, or leaves everything as it is and goes on in
// Go.
func TestAssemblyKeepsRuns(t *testing.T) {
	h, c, _ := withRuns(t, 64<<10)
	foreign := alloc(t, newHeap(t, Options{}), 64<<10)
	free := map[string]func(b []byte){
		"Free":        func(b []byte) { idle.free(h, b) },
		"FreePointer": func(b []byte) { idle.freePointer(h, unsafe.Pointer(unsafe.SliceData(b))) },
	}
	no := func(*pages.Span) {}
	for _, tt := range []struct {
		name string
		set  func(s *pages.Span) // before the call; undone after it
		of   func(b []byte) []byte
		by   string // one of free, or both
		kept bool
	}{
		{"live", no, nil, "", true},
		{"watched", func(s *pages.Span) { s.Watched = 1 }, nil, "", false},
		{"with a mapping of its own", func(s *pages.Span) { s.Separate = 1 }, nil, "", false},
		{"guarded", func(s *pages.Span) { s.Kind = pages.GuardRun }, nil, "", false},
		{"cut into blocks", func(s *pages.Span) { s.Kind = pages.BlockRun }, nil, "", false},
		{"claimed", func(s *pages.Span) { s.Size = 0 }, nil, "", false},
		{"another heap's by now", func(s *pages.Span) { s.Owner++ }, nil, "", false},
		{"elsewhere by now", func(s *pages.Span) { s.Base += pages.PageBytes }, nil, "", false},
		{"another heap's", no, func([]byte) []byte { return foreign }, "", false},
		{"cut short", no, func(b []byte) []byte { return b[:len(b)-1] }, "Free", false},
		{"too long", no, func(b []byte) []byte { return unsafe.Slice(&b[0], len(b)+1) }, "Free", false},
		{"from its second page on", no, func(b []byte) []byte { return b[pages.PageBytes:] }, "", false},
		{"nowhere", no, func([]byte) []byte { return make([]byte, 64<<10) }, "", false},
		{"in a cache without room", func(*pages.Span) { c.runs.held = c.runs.mostHeld }, nil, "", false},
		{"too long for the cache", func(s *pages.Span) { c.runs.longest = s.Pages() - 1 }, nil, "", false},
		{"as long as the cache's longest", func(s *pages.Span) { c.runs.longest = s.Pages() }, nil, "", true},
		{"the only run of the cache", func(*pages.Span) { c.runs.mostHeld = 1 }, nil, "", true},
		{"that fills the cache", func(s *pages.Span) {
			h.Free(alloc(t, h, 72<<10))
			c.runs.mostHeld = c.runs.held + s.Pages()
		}, nil, "", true},
	} {
		for name, free := range free {
			if tt.by != "" && tt.by != name {
				continue
			}
			b := alloc(t, h, 64<<10)
			s := pages.SpanAt(small.AddrOf(b))
			span, runs := *s, c.runs
			tt.set(s)
			set := *s
			calls, resume := stopInGo()
			of := b
			if tt.of != nil {
				of = tt.of(b)
			}
			free(of)
			kept := c.runs.n > runs.n
			if *calls == 0 != tt.kept || kept != tt.kept || !kept && *s != set {
				t.Errorf("%s of a block %s: %d calls went on in Go, %d runs are kept; span %+v, was %+v", name, tt.name, *calls, c.runs.n, *s, set)
			}
			resume()
			if kept {
				c.runs.mostHeld, c.runs.longest = runs.mostHeld, runs.longest
			} else {
				*s, c.runs = span, runs
				h.Free(b)
			}
			h.check(t)
			if st := h.Stats(); st.Blocks != 0 || st.LargeBlocks != 0 || st.LargeBytes != 0 {
				t.Errorf("%s of a block %s: %+v", name, tt.name, st)
			}
		}
	}
	h.Trim() // so that spans have the alignment that is asked for
	for _, align := range []int{pages.PageBytes, 2 * pages.PageBytes} {
		b, _ := h.Alloc(64<<10, align, false)
		h.caches.add(0)
		calls, resume := stopInGo()
		idle.free(h, b)
		resume()
		if want := align / (2 * pages.PageBytes); *calls != want {
			t.Errorf("%d calls went on in Go for an alignment of %d, want %d", *calls, align, want)
		}
	}
}

// The assembly allocates a large block from the kept runs, or leaves everything as it is and goes
// on in Go.
func TestAssemblyTakesRuns(t *testing.T) {
	malloc := func(f functions) *functions {
		of := f.alloc
		f.alloc = func(h *Heap, size, align int, zero bool) ([]byte, error) {
			if align != 8 || zero {
				return of(h, size, align, zero)
			}
			p := f.malloc(h, size)
			if p == nil {
				return nil, nil
			}
			return unsafe.Slice((*byte)(p), size), nil
		}
		return &f
	}
	for name, f := range map[string]*functions{"idle": &idle, "counting": &counting, "idle malloc": malloc(idle), "counting malloc": malloc(counting)} {
		counts := strings.HasPrefix(name, "counting")
		for _, tt := range []struct {
			name        string
			size, align int
			zero        bool
			left        int64
			taken       bool
		}{
			{"as long", 64 << 10, 8, false, 1 << 40, true},
			{"as many pages", 64<<10 - pages.PageBytes + 1, pages.PageBytes, false, 1 << 40, true},
			{"of the longest run", maxKeptPages * pages.PageBytes, 8, false, 1 << 40, true},
			{"a page more", 64<<10 + 1, 8, false, 1 << 40, false},
			{"a page less", 56 << 10, 8, false, 1 << 40, false},
			{"above all kept runs", maxKeptPages*pages.PageBytes + 64<<10, 8, false, 1 << 40, false},
			{"a byte above all kept runs", maxKeptPages*pages.PageBytes + 1, 8, false, 1 << 40, false},
			{"of a negative size", -8192, 8, false, 1 << 40, false},
			{"at a multiple of more than a page", 64 << 10, 2 * pages.PageBytes, false, 1 << 40, false},
			{"at a multiple of 0", 64 << 10, 0, false, 1 << 40, false},
			{"at a multiple of 3", 64 << 10, 3, false, 1 << 40, false},
			{"to be cleared", 64 << 10, 8, true, 1 << 40, false},
			{"that is an event", 64 << 10, 8, false, 64<<10 - 1, !counts},
			{"before an event", 64 << 10, 8, false, 64 << 10, true},
		} {
			kept := 64 << 10
			if tt.taken {
				kept = int(vm.RoundUp(uintptr(tt.size), pages.PageBytes))
			}
			h, c, s := withRuns(t, kept)
			runs := c.runs
			c.left = tt.left
			calls, resume := stopInGo()
			b := f.allocDirty(t, h, tt.size, tt.align, tt.zero)
			resume()
			left := tt.left
			if tt.taken && counts {
				left -= int64(tt.size) + watch.Countdown.Extra.Load()
			}
			taken := b != nil
			if *calls == 0 != tt.taken || taken != tt.taken || !taken && c.runs != runs || c.left != left {
				t.Errorf("%s: a block %s: %d calls went on in Go, %d bytes at %p; %d bytes left", name, tt.name, *calls, len(b), b, c.left)
			}
			if taken {
				if st := h.Stats(); len(b) != tt.size || cap(b) != tt.size || small.AddrOf(b) != s.Base || s.Size != uintptr(tt.size) || c.runs.n != 0 || st.LargeBlocks != 1 {
					t.Errorf("%s: a block %s: %d bytes at %p of span %+v; %+v", name, tt.name, len(b), b, s, st)
				}
				h.Free(b)
			}
			h.check(t)
		}
	}
}

// If two goroutines free a large block at once, the locked exchange lets one claim it. No test can
// make them meet there, so this one looks for the instruction.
func TestAssemblyClaimsRunsAtomically(t *testing.T) {
	if !pin.AssemblyRuns() {
		t.Skip("there is no assembly")
	}
	for name, f := range map[string]any{"free": idle.free, "freePointer": idle.freePointer} {
		var code []byte
		entry := reflect.ValueOf(f).Pointer()
		for pc := entry; runtime.FuncForPC(pc).Entry() == entry; pc++ {
			code = append(code, *(*byte)(vm.Pointer(pc)))
		}
		const lock, rexW, cmpxchg = 0xF0, 0x48, "\x0F\xB1"
		i := strings.Index(string(code), cmpxchg)
		if i < 2 || code[i-1]&^7 != rexW || code[i-2] != lock {
			t.Errorf("%s: no locked exchange", name)
		}
	}
}

// A nil Heap and a zero one panic, also for blocks of another heap: a fault in the assembly would
// end the process.
func TestAssemblyRefusesANilHeap(t *testing.T) {
	other := newHeap(t, Options{})
	for _, f := range []*functions{&idle, &counting} {
		for h, want := range map[*Heap]string{nil: "nil pointer", new(Heap): "zero value"} {
			for _, size := range []int{64, 64 << 10} {
				b := alloc(t, other, size)
				for name, call := range map[string]func(){
					"alloc":       func() { f.alloc(h, size, 8, false) },
					"malloc":      func() { f.malloc(h, size) },
					"free":        func() { f.free(h, b) },
					"freePointer": func() { f.freePointer(h, unsafe.Pointer(&b[0])) },
				} {
					if got := panicOf(call); !strings.Contains(got, want) {
						t.Errorf("%s of %d bytes: panic %q, want %q", name, size, got, want)
					}
				}
				other.Free(b)
			}
		}
	}
}

// The assembly serves blocks of each class, and of the largest alignment.
func TestAssemblyServesEachClass(t *testing.T) {
	if !pin.AssemblyRuns() {
		t.Skip("there is no assembly")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that the heap has one cache
	h := newHeap(t, Options{Decay: never})
	for class := range small.NumClasses - 1 {
		size := small.ClassSize(uint8(class + 1))
		for range 2 { // the first block makes the cache
			h.Free(alloc(t, h, size))
		}
		h.caches.Value(0).left = 1 << 40 // no sample is due
		calls, resume := stopInGo()
		for align := 1; align <= small.MaxAlign; align *= 2 {
			if small.ClassOf(size, align) == uint8(class+1) {
				b, _ := idle.alloc(h, size, align, false)
				idle.free(h, b)
				b, _ = idle.alloc(h, size, align, false)
				idle.freePointer(h, unsafe.Pointer(unsafe.SliceData(b)))
			}
		}
		if size%mallocAlign == 0 {
			idle.freePointer(h, idle.malloc(h, size))
			idle.freePointer(h, counting.malloc(h, size))
		}
		resume()
		if *calls != 0 {
			t.Errorf("%d calls for %d bytes went on in Go", *calls, size)
		}
	}
}

// Alloc and Malloc find the same classes while they count.
func TestAssemblyFindsTheClass(t *testing.T) { findsTheClass(t, &counting) }

// A processor whose slot would be the first beyond the table has none.
func TestAssemblyEndsAtTheEndOfTheTable(t *testing.T) {
	if !pin.AssemblyRuns() {
		t.Skip("there is no assembly")
	}
	const procs = 2 * pin.FirstSlots
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	h := newHeap(t, Options{Decay: never})
	live := alloc(t, h, 64)
	for slot := range h.caches.Len() {
		o := &processor{h, slot}
		o.Free(allocOn(t, o, 64, 8, false))
	}
	calls, resume := stopInGo()
	defer resume()
	length := (*uint64)(unsafe.Add(unsafe.Pointer(&h.caches), tableLen))
	was := *length
	var done atomic.Bool
	var wg sync.WaitGroup
	for range procs { // busy, so that all processors come to run
		wg.Go(func() {
			var holders pin.Holders
			for !done.Load() {
				slot := holders.Enter()
				if slot >= pin.FirstSlots && !done.Swap(true) {
					*length = uint64(slot)
					idle.alloc(h, 64, 8, false)
					counting.alloc(h, 64, 8, false)
					idle.malloc(h, 64)
					counting.malloc(h, 64)
					idle.free(h, live)
					idle.freePointer(h, unsafe.Pointer(&live[0]))
					*length = was
				}
				holders.Leave(slot)
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
	if *calls != 6 {
		t.Errorf("%d calls of 6 went on in Go", *calls)
	}
	h.Trim()
}

// allocDirty is alloc with another value than 0 in the register of the error's second word. The
// collector reads that word even if there is no error.
func (f *functions) allocDirty(t *testing.T, h *Heap, size, align int, zero bool) []byte {
	call := *(*func(h *Heap, size, align int, zero bool, dirt uintptr) ([]byte, error))(unsafe.Pointer(&f.alloc))
	b, err := call(h, size, align, zero, 1)
	if words := *(*[2]uintptr)(unsafe.Pointer(&err)); words != [2]uintptr{} {
		t.Errorf("%d bytes: error %#x", size, words)
	}
	return b
}

// withRuns returns a heap with one cache, the cache, and a run of size bytes in it.
func withRuns(t *testing.T, size int) (h *Heap, c *cache, s *pages.Span) {
	if !pin.AssemblyRuns() {
		t.Skip("there is no assembly")
	}
	was := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(was) })
	h = newHeap(t, Options{Decay: never})
	h.Free(alloc(t, h, size)) // makes the cache
	b := alloc(t, h, size)
	s = pages.SpanAt(small.AddrOf(b))
	h.Free(b)
	h.caches.Each(func(of *cache) { c = of })
	if c == nil || c.runs.n != 1 {
		t.Fatal("no run is kept")
	}
	return h, c, s
}

// stopInGo counts the calls that would go on in Go, and ends them, until resume is called.
func stopInGo() (calls *int, resume func()) {
	was, calls := slow, new(int)
	slow = functions{
		func(*Heap, int, int, bool) ([]byte, error) { *calls++; return nil, nil },
		func(*Heap, int) unsafe.Pointer { *calls++; return nil },
		func(*Heap, []byte) { *calls++ },
		func(*Heap, unsafe.Pointer) { *calls++ },
	}
	return calls, func() { slow = was }
}

// countInGo counts the calls that go on in Go.
func countInGo(t *testing.T) *int {
	was, calls := slow, new(int)
	t.Cleanup(func() { slow = was })
	slow = functions{
		func(h *Heap, size, align int, zero bool) ([]byte, error) {
			*calls++
			return was.alloc(h, size, align, zero)
		},
		func(h *Heap, size int) unsafe.Pointer { *calls++; return was.malloc(h, size) },
		func(h *Heap, b []byte) { *calls++; was.free(h, b) },
		func(h *Heap, p unsafe.Pointer) { *calls++; was.freePointer(h, p) },
	}
	return calls
}
