//go:build !race && !freehold_portable

package pin

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
)

// With a Go that was not tested the assembly is off, and freehold slower.
func TestKnown(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skipf("the runtime may keep the processor elsewhere on %s", runtime.GOOS)
	}
	if !knownVersion() {
		t.Errorf(`%s is none of the tested versions, %v, so heaps, pools and shared arenas do without their assembly.
To test this version on linux/amd64:
  1. In runtime/preempt.go isAsyncSafePoint must still return false for assembly (abi.FuncFlagAsm),
     and nothing else may stop a goroutine there.
  2. In cmd/compile/abi-internal.md the registers of amd64 must still be as Known says.
  3. The other tests of this package must pass, and make stress soak.
Then add the version to tested in runtime_amd64.go.`, version, tested)
	}
	compiler, known := knownCompiler(), knownRuntime()
	if compiler && known {
		return
	}
	build, _ := debug.ReadBuildInfo()
	for _, s := range build.Settings {
		if s.Key == "-gcflags" {
			t.Skipf("built with %s: compiler %v, runtime %v", s.Value, compiler, known)
		}
	}
	t.Errorf("compiler %v, runtime %v: see Known", compiler, known)
}

func TestOnlyTestedVersionsAreKnown(t *testing.T) {
	defer func(v string) { version = v }(version)
	fits := knownRuntime() && knownCompiler()
	for v, want := range map[string]bool{
		"go1.26":                         true,
		"go1.26.8":                       true,
		"go1.26.12":                      true,
		"go1.25.9":                       false,
		"go1.27":                         false,
		"go1.260":                        false,
		"go1.26rc1":                      false, // a candidate
		"go1.26.8-X:runtimesecret":       false, // an experiment
		"go1.26.8-vendor":                false,
		"devel go1.27-0a1b2c3 Tue Nov 3": false,
		"go1.27-devel_0a1b2c3":           false,
		"go1.26-devel_0a1b2c3":           false,
	} {
		version = v
		if got := Known(); got != (want && fits) {
			t.Errorf("%q: %t", version, got)
		}
	}
}

// mustFit skips where the assembly cannot run. Whether this version of Go was
// tested does not matter: that is what these tests are for.
func mustFit(t *testing.T) {
	if !knownRuntime() || !knownCompiler() {
		t.Skip("this runtime or compiler is another than the assembly's")
	}
}

// A goroutine keeps its processor while it is in an assembly function, though
// the runtime asks it to yield and another goroutine waits.
func TestAssemblyIsNotPreempted(t *testing.T) {
	mustFit(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var turns atomic.Uint64 // of the other goroutine, which needs the processor
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

	for turns.Load() == 0 {
		runtime.Gosched()
	}
	for range 3 {
		change, asked := assembly.linger(&turns, 1<<28, 1<<17) // some 10 s, and 5 ms
		if !asked {
			t.Fatal("the runtime never asked the assembly to yield")
		}
		if change != 0 {
			t.Errorf("preempted in assembly: the other goroutine had %d turns", change)
		}
	}
}

// The assembly and procPin find the same processor, wherever a goroutine runs
// and however many processors there are.
func TestProcessor(t *testing.T) {
	mustFit(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var holders Holders
	var mu sync.Mutex
	seen := map[int]bool{}
	for procs := 1; procs <= 16; procs++ {
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
					got := assembly.processor()
					holders.Leave(want)
					if got != uintptr(want) {
						t.Errorf("processor %d, procPin says %d", got, want)
						return
					}
					if got >= uintptr(procs) {
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
	if len(seen) < 2 {
		t.Errorf("all goroutines ran on %v", seen)
	}
}
