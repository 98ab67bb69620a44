//go:build (amd64 || arm64) && !race && !freehold_portable && !asan

package pin

import (
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// With an untested version of Go, leaves are called with pins, and freehold is slower.
func TestKnown(t *testing.T) {
	if !slices.Contains(systems, runtime.GOOS) {
		t.Skip(Obstacle())
	}
	if !knownVersion() {
		t.Errorf("%s.\nSo heaps, pools and shared arenas take pins. CONTRIBUTING.md says how to test a new version of Go.", Obstacle())
	}
	if Obstacle() == "" {
		return
	}
	build, _ := debug.ReadBuildInfo()
	for _, s := range build.Settings {
		if s.Key == "-gcflags" {
			t.Skipf("built with %s: %s", s.Value, Obstacle())
		}
	}
	t.Error(Obstacle())
}

func TestOnlyTestedVersionsAreKnown(t *testing.T) {
	mustFit(t)
	defer func(v, s string) { version, system = v, s }(version, system)
	system = systems[0]
	for v, want := range map[string]bool{
		"go1.26":                         true,
		"go1.26.8":                       true,
		"go1.26.12":                      true,
		"go1.27":                         true,
		"go1.27.4":                       true,
		"go1.25.9":                       true,
		"go1.28":                         false,
		"go1.260":                        false,
		"go1.26rc1":                      false, // a candidate
		"go1.26.8-X:runtimesecret":       false, // an experiment
		"go1.26.8-vendor":                false,
		"devel go1.27-0a1b2c3 Tue Nov 3": false,
		"go1.27-devel_0a1b2c3":           false,
		"go1.26-devel_0a1b2c3":           false,
	} {
		version = v
		const obstacle = " is none of the tested versions, go1.25, go1.26, go1.27"
		if got := Obstacle(); want && got != "" || !want && got != v+obstacle {
			t.Errorf("%q: %q", v, got)
		}
	}
}

// On a system that is not listed, leaves are called with pins, even if they might work without.
func TestOnlyListedSystemsAreKnown(t *testing.T) {
	mustFit(t)
	defer func(s string) { system = s }(system)
	system = "plan9"
	if got := Obstacle(); !strings.HasPrefix(got, "plan9 is none of the tested systems, linux, ") {
		t.Errorf("%q", got)
	}
}

// mustFit skips a test where leaves cannot be called without pins. It ignores whether this
// system or version of Go is listed: these tests decide that.
func mustFit(t *testing.T) {
	if mOfP() == 0 || !onlyCalls(codeOf(echo), 0) {
		t.Skip("this runtime or compiler is another than those tested")
	}
}

// A goroutine in a leaf keeps its processor, even if the runtime asks it to yield and another
// goroutine waits. In an ordinary function it loses the processor.
func TestLeafIsNotPreempted(t *testing.T) {
	mustFit(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var turns atomic.Uint64 // of the other goroutine, which waits for the processor
	var done atomic.Bool
	ended := make(chan bool)
	go func() {
		defer close(ended)
		for !done.Load() {
			turns.Add(1)
			runtime.Gosched()
		}
	}()
	defer func() { done.Store(true); <-ended }()

	leaf := unpinned[func(word *atomic.Uint64, guard *uintptr, wait, stay int, at uintptr) (change uint64, asked bool)](codeOf(linger))
	if !onlyCalls(codeOf(linger), 0) {
		t.Fatal("linger is no leaf")
	}
	for turns.Load() == 0 {
		runtime.Gosched()
	}
	for range 3 {
		change, asked := leaf(&turns, stackGuard(), 1<<32, 1<<20, 0) // at least 10 s, and 1 ms
		if !asked {
			t.Fatal("the runtime never asked the leaf to yield")
		}
		if change != 0 {
			t.Errorf("preempted in a leaf: the other goroutine had %d turns", change)
		}
	}
	if g := os.Getenv("GODEBUG"); strings.Contains(g, "asyncpreemptoff=1") || strings.Contains(g, "gccheckmark=1") {
		return // the runtime preempts only at function calls; gccheckmark implies that
	}
	if was := turns.Load(); lingerPreempted(&turns, 1<<36) == was {
		t.Error("an ordinary function is not preempted either, so this test proves nothing")
	}
}

// linger waits until the runtime has asked the goroutine to yield, for at most wait rounds. It
// then spins for a given number of rounds, and returns the change of the word meanwhile. It is a
// leaf.
//
//go:nosplit
//go:noinline
func linger(word *atomic.Uint64, guard *uintptr, wait, stay int, at uintptr) (change uint64, asked bool) {
	was := word.Load()
	for {
		const stackPreempt = ^uintptr(1313)
		if atomic.LoadUintptr(guard) == stackPreempt {
			break
		}
		if wait--; wait == 0 {
			return word.Load() - was, false
		}
	}
	for ; stay > 0; stay-- {
		word.Load()
	}
	return word.Load() - was, true
}

// lingerPreempted waits until the word changes, for at most the given rounds, and returns it.
//
//go:noinline
func lingerPreempted(word *atomic.Uint64, rounds int) uint64 {
	was := word.Load()
	for word.Load() == was && rounds > 0 {
		rounds--
	}
	return word.Load()
}

// A leaf gets the number that procPin returns, on each processor, with any number of processors.
// The test goes on until the goroutines have run on two.
func TestProcessor(t *testing.T) {
	mustFit(t)
	leaf := unpinned[func(a, b, c, d, at uintptr) (v, w, x, y uintptr, slot int)](codeOf(echo))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var holders Holders
	var mu sync.Mutex
	seen := map[int]bool{}
	for round := 1; round <= 16 || len(seen) < 2; round++ {
		procs := min(round, 16)
		runtime.GOMAXPROCS(procs)
		var wg sync.WaitGroup
		for range 4 * procs {
			wg.Go(func() {
				if procs%2 == 0 {
					runtime.LockOSThread()
					defer runtime.UnlockOSThread()
				}
				for range 1000 {
					want := holders.Enter()
					_, _, _, _, got := leaf(0, 0, 0, 0, 0)
					holders.Leave(want)
					if got != want {
						t.Errorf("processor %d, procPin says %d", got, want)
						return
					}
					if got >= procs {
						t.Errorf("processor %d of %d", got, procs)
						return
					}
					mu.Lock()
					seen[want] = true
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	}
}

// Obstacle compares each byte of procPin, except for the offsets of the lock count and the p.
func TestObstacleLooksAtProcPin(t *testing.T) {
	mustFit(t)
	defer func(v, s string) { version, system = v, s }(version, system)
	version, system = tested[0], systems[0]
	if o := Obstacle(); o != "" {
		t.Fatal(o)
	}
	for i, mask := range procPinMask {
		for bit := byte(1); bit != 0; bit <<= 1 {
			procPinCode[i] ^= bit
			if mask&bit != 0 && Obstacle() == "" {
				t.Errorf("bit %#x of byte %d of procPin is another, and there is no obstacle", bit, i)
			}
			procPinCode[i] ^= bit
		}
	}
}

type leafFunc = func(a, b, c, d, at uintptr) int

func pinnedLeaf(a, b, c, d, at uintptr) int { return -2 }

//go:noinline
func slowLeaf(a, b, c, d, at uintptr) int { return -3 }

//go:nosplit
//go:noinline
func slotOf(_, _, _, _, at uintptr) int { return SlotAt(at) }

// A function that calls any function but its slow path is no leaf: Unpinned returns pinned, and
// there is an obstacle.
func TestFunctionsThatCallArePinned(t *testing.T) {
	mustFit(t)
	defer func(v, s string) { version, system, calls = v, s, false }(version, system)
	version, system = tested[0], systems[0]
	for name, f := range map[string]leafFunc{"nothing": slotOf, "variables": spills, "a large frame": large, "its slow path": callsSlow} {
		if got := Unpinned(f, slowLeaf, pinnedLeaf)(0, 0, 0, 0, 0); got < 0 {
			t.Errorf("a leaf with %s is called with a pin", name)
		}
	}
	if got := Unpinned(callsSlow, slowLeaf, pinnedLeaf)(1, 0, 0, 0, 0); got != -3 {
		t.Errorf("the slow path returns %d", got)
	}
	for name, f := range map[string]leafFunc{"a call": callsOther, "two calls": callsBoth, "a write barrier": stores} {
		calls = false
		if got := Unpinned(f, slowLeaf, pinnedLeaf)(0, 0, 0, 0, 0); got != -2 || Obstacle() == "" {
			t.Errorf("a function with %s is a leaf", name)
		}
	}
}

//go:nosplit
//go:noinline
func callsSlow(a, b, c, d, at uintptr) int {
	if a != 0 {
		return slowLeaf(a, b, c, d, at)
	}
	return SlotAt(at)
}

//go:nosplit
//go:noinline
func callsOther(a, b, c, d, at uintptr) int { return slotOf(b, a, c, d, at) }

//go:nosplit
//go:noinline
func callsBoth(a, b, c, d, at uintptr) int {
	if a != 0 {
		return slowLeaf(a, b, c, d, at)
	}
	return slotOf(b, a, c, d, at) + 1
}

var stored *int

//go:nosplit
//go:noinline
func stores(a, b, c, d, at uintptr) int {
	stored = *(**int)(pointer(at + gM))
	return SlotAt(at)
}

//go:nosplit
//go:noinline
func spills(a, b, c, d, at uintptr) int {
	var v [4]uintptr
	v[a&3], v[b&3] = c, d
	return SlotAt(at) + int(v[c&3])
}

//go:nosplit
//go:noinline
func large(a, b, c, d, at uintptr) int {
	var v [64]uintptr
	v[a&63], v[b&63] = c, d
	return SlotAt(at) + int(v[c&63])
}

// With an untested version of Go, the functions that take pins are called.
func TestPinnedWithUntestedVersions(t *testing.T) {
	defer func(v string) { version = v }(version)
	version = "go1.24"
	if got := Unpinned[leafFunc](slotOf, slowLeaf, pinnedLeaf)(0, 0, 0, 0, 0); got != -2 {
		t.Errorf("the leaf runs, on processor %d", got)
	}
}
