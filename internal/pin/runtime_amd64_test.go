//go:build !race && !freehold_portable && !asan

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

// Known looks at all that assembly relies on, each in turn.
func TestKnownLooksAtEverything(t *testing.T) {
	mustFit(t)
	defer func(v string, a struct {
		probe     func(a, b, c, d, e uintptr) (v, w, x, y, z uintptr)
		processor func() uintptr
		linger    func(word *atomic.Uint64, wait, stay uintptr) (change uint64, asked bool)
	}) {
		version, assembly = v, a
	}(version, assembly)
	version = tested[0]
	if !Known() {
		t.Fatal("not known as it is")
	}
	for i := range code {
		code[i]++
		if counts := i >= 6 && i < 10; Known() != counts { // the count of pins
			t.Errorf("byte %d of procPin is another, and it is known: %t", i, !counts)
		}
		code[i]--
	}
	probe, processor := assembly.probe, assembly.processor
	for i := range 5 {
		assembly.probe = func(a, b, c, d, e uintptr) (v, w, x, y, z uintptr) {
			v, w, x, y, z = probe(a, b, c, d, e)
			*[]*uintptr{&v, &w, &x, &y, &z}[i]++
			return
		}
		if Known() {
			t.Errorf("result %d is in another register, and it is known", i)
		}
	}
	assembly.probe = probe
	assembly.processor = func() uintptr { return processor() + 1 }
	if Known() {
		t.Error("the processor is another, and it is known")
	}
}

// Where assembly must not run, the plain functions do.
func TestPlainWhereAssemblyMustNotRun(t *testing.T) {
	defer func(v string) { version = v }(version)
	version = "go1.25"
	type functions struct{ probe func() uintptr }
	const plain = 12345
	if got := Assembly(functions{func() uintptr { return plain }}, entries()).probe(); got != plain {
		t.Error("assembly runs")
	}
}
