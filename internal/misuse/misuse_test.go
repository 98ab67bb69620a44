// Programs, what is promised of them, and how they are run.
//
//	promised here, as a panic or an error  in this process
//	anything else, that may end a process  each in a child, with a timeout
//	twins                                  in this process
//	all that is promised, once more        in one child with a hostile collector

package misuse

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	rundebug "runtime/debug"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// A program makes one mistake, and its twin does the same without it.
type program struct {
	mistake string
	caught  caught
	bug     func(w *world)
	twin    func(w *world)
}

// A family is programs about one part of freehold.
type family struct {
	name     string
	programs []program
}

// families is all programs, in the order of docs/reliability.md.
var families = []family{
	{"Blocks of a Heap, and of Pages", heapPrograms},
	{"Malloc and FreePointer", pointerPrograms},
	{"Typed memory", typedPrograms},
	{"Sizes, alignments and options", argumentPrograms},
	{"Wrappers", wrapperPrograms},
	{"arena.Arena, Registry and Recycler", arenaPrograms},
	{"arena.Shared", sharedPrograms},
	{"Package pool", poolPrograms},
	{"The memory itself", memoryPrograms},
}

// caught says how a mistake is detected, by build; the zero how is no promise.
// inTests is not a build: the blocks are from alloctest.New then.
type caught struct{ plain, debug, race, inTests how }

// always is what every build promises.
func always(h how) caught { return caught{plain: h, debug: h, race: h} }

// andInTests adds what a test sees that takes its blocks from alloctest.New.
func (c caught) andInTests(h how) caught {
	c.inTests = h
	return c
}

// here is the promise for this build.
func (c caught) here() how {
	switch {
	case race:
		return c.race
	case debug:
		return c.debug
	}
	return c.plain
}

// A how is a way to detect a mistake.
type how struct {
	kind  kind
	words string // which the message contains
}

type kind string

const (
	notPromised kind = ""
	aPanic      kind = "panic"         // its text begins with "freehold: "
	outOfMemory kind = "out of memory" // an error that matches ErrOutOfMemory
	anError     kind = "error"
	aNo         kind = "false"                // the guilty call's answer
	aNil        kind = "nil"                  // likewise
	contained   kind = "panic, or no harm"    // a matter of nanoseconds which of them
	aFault      kind = "fault"                // at the guilty instruction
	raceReport  kind = "race report"          // the race detector's
	raceOrPanic kind = "race report or panic" // whichever is first
	testFails   kind = "test fails"           // by the time that it ends
)

func panics(words string) how  { return how{aPanic, words} }
func fails(words string) how   { return how{anError, words} }
func reports(words string) how { return how{testFails, words} }

var (
	refuses       = how{kind: outOfMemory}
	answersNo     = how{kind: aNo}
	returnsNil    = how{kind: aNil}
	isHarmless    = how{kind: contained}
	faults        = how{kind: aFault}
	races         = how{kind: raceReport}
	racesOrPanics = how{kind: raceOrPanic}
)

// inChild reports whether a promise is about a process as a whole.
func (h how) inChild() bool {
	switch h.kind {
	case notPromised, aFault, raceReport, raceOrPanic:
		return true
	}
	return false
}

// A world is what a program has. The program may set err or no.
type world struct {
	heap *freehold.Heap
	a    freehold.Allocator // heap, or the one of alloctest
	err  error              // that the guilty call returned
	no   bool               // it answered false, or nil
	sink byte               // keeps what is read from being optimized away
}

// alloc returns a block of w.a.
func (w *world) alloc(size int) []byte { return freehold.Must(w.a.Alloc(size, 8)) }

// again returns a block of w.a in the memory of b, which was freed.
func (w *world) again(b []byte) []byte {
	w.heap.Trim() // no processor's cache has it
	return retake(b, func() []byte { return w.alloc(len(b)) })
}

// retake allocates until it has b's memory once more; it gives up some time.
func retake(b []byte, alloc func() []byte) []byte {
	c := alloc()
	for n := 0; addrOf(c) != addrOf(b) && n < 10000; n++ {
		c = alloc()
	}
	return c
}

// touch reads and writes each byte of b. The race detector may miss one race of
// two goroutines that are in step; of a hundred it finds one.
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

// at returns the byte at an offset from p, in its block or not.
func at(p unsafe.Pointer, offset int) *byte { return (*byte)(unsafe.Add(p, offset)) }

// atOnce runs both in goroutines that know nothing of each other. What one of
// them panics with, the caller panics with.
//
// Neither goroutine ends before the other has done its part: the race detector
// may take one that begins then for the same.
func atOnce(f, g func()) {
	done, end := make(chan any, 2), make(chan bool)
	for _, call := range []func(){f, g} {
		go func() {
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

// An outcome is what came of a program.
type outcome struct {
	world
	panicked string
	faulted  bool
	output   string // of its process
	reports  string // of its test
}

// run runs one half of a program. inTests says where the blocks come from.
func run(t testing.TB, half func(w *world), inTests bool) (o outcome) {
	o.heap = freehold.NewHeap(&freehold.HeapOptions{Name: "guilty"})
	o.a = o.heap
	r := &recorder{TB: t}
	if inTests {
		o.a = alloctest.New(r)
	}
	func() {
		defer func() {
			if p := recover(); p != nil {
				o.panicked = fmt.Sprint(p)
				if _, isFault := p.(interface{ Addr() uintptr }); isFault {
					o.faulted = true
				}
			}
		}()
		half(&o.world)
	}()
	for _, f := range r.cleanups {
		f()
	}
	o.reports = strings.Join(r.failures, "\n")
	return o
}

// fault says what is wrong with an outcome where h is promised, "" if nothing.
func (h how) fault(o outcome) string {
	isOurs := strings.HasPrefix(o.panicked, "freehold: ")
	raced := strings.Contains(o.output, "WARNING: DATA RACE")
	ok := false
	switch h.kind {
	case notPromised:
		ok = true
	case aPanic:
		ok = isOurs && strings.Contains(o.panicked, h.words)
	case outOfMemory:
		ok = o.panicked == "" && errors.Is(o.err, freehold.ErrOutOfMemory)
	case anError:
		ok = o.panicked == "" && o.err != nil && strings.Contains(o.err.Error(), h.words)
	case aNo, aNil:
		ok = o.panicked == "" && o.no
	case contained:
		ok = o.panicked == "" || isOurs
	case aFault:
		ok = o.faulted
	case raceReport:
		ok = raced
	case raceOrPanic:
		ok = raced || isOurs
	case testFails:
		ok = strings.Contains(o.reports, h.words)
	}
	if ok {
		return ""
	}
	return fmt.Sprintf("want %s %q; panic %q, fault %v, error %v, answered no %v, reports %q, output:\n%s",
		h.kind, h.words, o.panicked, o.faulted, o.err, o.no, o.reports, o.output)
}

// recorder is a testing.TB that notes failures.
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

// Every promise of this build that leaves the process alive, and the heap too:
// after the mistake it works on.
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

// worksOn checks that a heap still gives and takes blocks, unless it is closed,
// and closes it.
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

// No twin is found guilty of anything, and none leaves a block behind.
func TestTwins(t *testing.T) {
	each(t, func(t *testing.T, p program) {
		o := run(t, p.twin, false)
		if o.panicked != "" || o.err != nil || o.no {
			t.Errorf("panic %q, error %v, answered no %v", o.panicked, o.err, o.no)
		}
		if n := o.heap.Live(); n != 0 {
			t.Errorf("%d blocks are live", n)
		}
		o.heap.Close()
		if p.caught.inTests.kind != notPromised {
			if o := run(t, p.twin, true); o.panicked != "" || o.reports != "" {
				t.Errorf("with alloctest.New: panic %q, reports %q", o.panicked, o.reports)
			}
		}
	})
}

const (
	childVariable = "FREEHOLD_MISUSE"
	childTimeout  = 30 * time.Second
)

// What may end the process runs in one of its own: whatever is not promised may
// do anything there, but not hang.
func TestPromisesInChildren(t *testing.T) {
	mayStartChildren(t)
	each(t, func(t *testing.T, p program) {
		h := p.caught.here()
		if !h.inChild() || h.kind == notPromised && testing.Short() {
			return
		}
		t.Parallel()
		if fault := h.fault(runChild(t, p)); fault != "" {
			t.Error(fault)
		}
	})
}

// The collector runs all the time and destroys what it frees: what is promised
// holds there too, and twins are still innocent.
func TestHostileCollector(t *testing.T) {
	mayStartChildren(t)
	if testing.Short() && race {
		t.Skip("slow")
	}
	out, err := start(t, "", "-test.run=^(TestPromises|TestTwins)$", "GOGC=1", "GODEBUG=clobberfree=1,gccheckmark=1")
	if err != nil || !strings.HasSuffix(out, "PASS\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

func mayStartChildren(t *testing.T) {
	if exec.Command(os.Args[0], "-test.list=^$").Run() != nil {
		t.Skip("the test binary runs under an emulator, and cannot start itself")
	}
}

// start runs the test binary in a process of its own.
func start(t *testing.T, name, arg string, env ...string) (out string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), childTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], arg)
	cmd.Env = append(append(os.Environ(), childVariable+"="+name, "GORACE=atexit_sleep_ms=0"), env...)
	cmd.WaitDelay = time.Second
	b, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Errorf("a child was still running after %v:\n%s", childTimeout, b)
	}
	return string(b), err
}

const (
	panicMark = "outcome: panic "
	faultMark = "outcome: fault "
)

// runChild runs a program's bug in a process of its own.
func runChild(t *testing.T, p program) (o outcome) {
	o.output, _ = start(t, p.mistake, "-test.run=^TestChild$")
	for line := range strings.Lines(o.output) {
		if text, ok := strings.CutPrefix(line, panicMark); ok {
			o.panicked = text
		}
		o.faulted = o.faulted || strings.HasPrefix(line, faultMark)
	}
	return o
}

// TestChild is what runs in a child.
func TestChild(t *testing.T) {
	name := os.Getenv(childVariable)
	if name == "" {
		t.Skip("this is no child")
	}
	rundebug.SetPanicOnFault(true)
	for _, f := range families {
		for _, p := range f.programs {
			if p.mistake != name {
				continue
			}
			switch o := run(t, p.bug, false); {
			case o.faulted:
				fmt.Println(faultMark + o.panicked)
			case o.panicked != "":
				fmt.Println(panicMark + o.panicked)
			}
		}
	}
}
