// Programs, and where they run:
//
//	bugs that are promised to panic or fail   in this process
//	other bugs, which may end a process       in a child process each, with a timeout
//	twins                                     in this process
//	promised bugs and twins, once more        in one child with a hostile collector
//	all of this, in the plain build           in a child for each mode of FREEHOLD_DEBUG

package misuse

import (
	"errors"
	"fmt"
	rundebug "runtime/debug"
	"strings"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/owners"
	"github.com/freehold-go/freehold/internal/stacks"
	"github.com/freehold-go/freehold/track"
)

// A program makes one mistake. Its twin does the same without the mistake.
type program struct {
	mistake string
	caught  caught
	bug     func(w *world)
	twin    func(w *world)
}

// A family is the programs about one part of freehold.
type family struct {
	name     string
	programs []program
}

// families holds all programs, in the order of docs/reliability.md.
var families = []family{
	{"Blocks of a Heap, and of Pages", heapPrograms},
	{"Malloc and FreePointer", pointerPrograms},
	{"Typed memory", typedPrograms},
	{"Sizes, alignments and options", argumentPrograms},
	{"Wrappers", wrapperPrograms},
	{"arena.Arena and Recycler", arenaPrograms},
	{"arena.Shared", sharedPrograms},
	{"Package pool", poolPrograms},
	{"Package hashmap", hashmapPrograms},
	{"Package btree", btreePrograms},
	{"Package intern", internPrograms},
	{"Package vector", vectorPrograms},
	{"Package cache", cachePrograms},
	{"Package buffer", bufferPrograms},
	{"Package extsort", extsortPrograms},
	{"Package budget", budgetPrograms},
	{"Package epoch", epochPrograms},
	{"Package secret", secretPrograms},
	{"The memory itself", memoryPrograms},
}

// A world is the memory of a program and its results. The program may set err or no.
type world struct {
	heap *freehold.Heap
	a    freehold.Allocator // heap, or the one of alloctest
	err  error              // from the guilty call
	no   bool               // the guilty call returned false or nil
	sink byte               // keeps reads from being optimized away
}

// alloc returns a block of w.a.
func (w *world) alloc(size int) []byte { return freehold.Must(w.a.Alloc(size, 8)) }

// again allocates blocks until one has the memory of b, which was freed, and returns it.
func (w *world) again(b []byte) []byte {
	w.heap.Trim() // empties the processors' caches
	var taken [][]byte
	c := retake(b, func() []byte {
		taken = append(taken, w.alloc(len(b)))
		return taken[len(taken)-1]
	})
	for _, other := range taken[:len(taken)-1] {
		w.a.Free(other)
	}
	return c
}

// retake allocates until it gets b's memory again. After 10,000 blocks it gives up.
func retake(b []byte, alloc func() []byte) []byte {
	c := alloc()
	for n := 0; addrOf(c) != addrOf(b) && n < 10000; n++ {
		c = alloc()
	}
	return c
}

// touch reads and writes each byte of b. The race detector may miss one race of two goroutines
// in lockstep, but not a hundred.
func touch(b []byte) {
	for i := range b {
		b[i]++
	}
}

// look reads each byte of b.
func (w *world) look(b []byte) {
	for _, c := range b {
		w.sink += c
	}
}

func addrOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// at returns the byte at an offset from p, inside or outside of its block.
func at(p unsafe.Pointer, offset int) *byte { return (*byte)(unsafe.Add(p, offset)) }

// atOnce runs f and g in two unsynchronized goroutines. If one panics, atOnce panics with the
// same value.
//
// Neither goroutine ends before the other is done: the race detector may take a goroutine that
// starts after the end of another for the same one.
func atOnce(f, g func()) {
	done, end := make(chan any, 2), make(chan bool)
	for _, call := range []func(){f, g} {
		go func() {
			rundebug.SetPanicOnFault(true)
			defer func() {
				done <- recover()
				<-end
			}()
			call()
		}()
	}
	thrown := []any{<-done, <-done}
	close(end)
	for _, p := range thrown {
		if p != nil {
			panic(p)
		}
	}
}

// An outcome is the result of a program.
type outcome struct {
	world
	panicked  string
	faulted   bool
	explained string // the result of Explain for the fault
	pointers  string // the findings of CheckPointers in the heap
	output    string // of the program's process
	reports   string // of the program's test
}

// run runs one half of a program. If inTests, its blocks come from alloctest.New.
func run(t testing.TB, half func(w *world), inTests bool) (o outcome) {
	o.heap = freehold.NewHeap(&freehold.HeapOptions{Name: "guilty"})
	o.a = o.heap
	r := &recorder{TB: t}
	if inTests {
		o.a = alloctest.New(r)
	}
	func() {
		defer rundebug.SetPanicOnFault(rundebug.SetPanicOnFault(true))
		defer func() {
			if p := recover(); p != nil {
				o.panicked = fmt.Sprint(p)
				if _, isFault := p.(interface{ Addr() uintptr }); isFault {
					o.faulted = true
					o.explained, _ = track.Explain(p)
				}
			}
		}()
		half(&o.world)
		if modeHere == "poison" && !isClosed(o.heap) {
			o.heap.Trim() // this ends the quarantine, which finds late writes
		}
	}()
	o.pointers = goPointers(t, o.heap)
	for _, f := range r.cleanups {
		f()
	}
	o.reports = strings.Join(r.failures, "\n")
	return o
}

// isClosed reports whether a heap is closed: only a closed heap prints ": closed".
func isClosed(h *freehold.Heap) bool { return strings.HasSuffix(h.String(), ": closed") }

// goPointers returns the findings of CheckPointers, one a line.
func goPointers(t testing.TB, h *freehold.Heap) string {
	all, err := track.CheckPointers(h)
	if canCheckPointers = !errors.Is(err, errors.ErrUnsupported); err != nil && canCheckPointers {
		t.Error(err)
	}
	var s strings.Builder
	for _, p := range all {
		fmt.Fprintln(&s, p)
	}
	return s.String()
}

var canCheckPointers bool

// recorder is a testing.TB that records failures.
type recorder struct {
	testing.TB
	failures []string
	cleanups []func()
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}
func (r *recorder) Logf(format string, args ...any) {}
func (r *recorder) Failed() bool                    { return len(r.failures) > 0 }
func (r *recorder) Cleanup(f func())                { r.cleanups = append(r.cleanups, f) }

// each runs check for each program.
func each(t *testing.T, check func(t *testing.T, p program)) {
	for _, f := range families {
		for _, p := range f.programs {
			t.Run(f.name+"/"+p.mistake, func(t *testing.T) { check(t, p) })
		}
	}
}

// The bug of each promise that leaves the process alive is detected, and the heap works
// afterwards.
func TestPromises(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		if h := p.caught.here(); !h.inChild() {
			o := run(t, p.bug, false)
			if fault := h.fault(o); fault != "" {
				t.Error(fault)
			}
			worksOn(t, o.heap)
		}
		if h := p.caught.inTests; h.kind != notPromised {
			if fault := h.fault(run(t, p.bug, true)); fault != "" {
				t.Errorf("with alloctest.New: %s", fault)
			}
		}
	})
}

// worksOn checks that a heap still allocates and frees, unless it is closed. Then it closes the
// heap.
func worksOn(t *testing.T, h *freehold.Heap) {
	defer h.Close()
	defer func() {
		if p := recover(); p != nil && !strings.HasSuffix(fmt.Sprint(p), "is closed") {
			t.Errorf("after the mistake: %v", p)
		}
	}()
	for _, size := range []int{1, 64, 100, 5000, 100000} {
		b, err := h.Zeroed(size, 8)
		if err != nil {
			t.Errorf("after the mistake: %v", err)
			continue
		}
		for i := range b {
			if b[i] != 0 {
				t.Fatalf("after the mistake: byte %d of a zero block of %d bytes is %#x", i, size, b[i])
			}
		}
		h.Free(b)
	}
	h.Trim()
}

// No twin is reported, and none leaves a live block.
func TestTwins(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		o := run(t, p.twin, false)
		if o.panicked != "" || o.err != nil || o.no || o.pointers != "" {
			t.Errorf("panic %q, error %v, answered no %v, Go pointers %q", o.panicked, o.err, o.no, o.pointers)
		}
		if n := o.heap.Live(); n != 0 {
			t.Errorf("%d blocks are live", n)
		}
		for _, l := range track.Leaks() {
			if stack := stacks.Text(l.Stack, ""); strings.Contains(stack, "TestTwins") {
				t.Errorf("%d bytes are reported as a leak of\n%s", l.Bytes, stack)
			}
		}
		o.heap.Close()
		if p.caught.inTests.kind != notPromised {
			o := run(t, p.twin, true)
			if o.panicked != "" || o.reports != "" {
				t.Errorf("with alloctest.New: panic %q, reports %q", o.panicked, o.reports)
			}
			o.heap.Close()
		}
	})
	owners.Collect()
	for _, d := range track.DroppedOwners() {
		if stack := stacks.Text(d.Stack, ""); strings.Contains(stack, "TestTwins") {
			t.Errorf("%s is reported as dropped, made at:\n%s", d.Kind, stack)
		}
	}
}
