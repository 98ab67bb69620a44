//go:build !race && !freehold_portable && !asan

package pin

import (
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// With a Go that was not tested the assembly is off, and freehold slower.
func TestKnown(t *testing.T) {
	if !slices.Contains(testedSystems, runtime.GOOS) {
		t.Skip(Obstacle())
	}
	if !knownVersion() {
		t.Errorf("%s.\nSo heaps, pools and shared arenas do without their assembly. CONTRIBUTING.md says how to test a new version of Go.", Obstacle())
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
	t.Errorf("compiler %v, runtime %v: %s", compiler, known, Obstacle())
}

func TestOnlyTestedVersionsAreKnown(t *testing.T) {
	mustFit(t)
	defer func(v, s string) { version, system = v, s }(version, system)
	system = testedSystems[0]
	for v, want := range map[string]bool{
		"go1.26":                         true,
		"go1.26.8":                       true,
		"go1.26.12":                      true,
		"go1.27":                         true,
		"go1.27.4":                       true,
		"go1.25.9":                       false,
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
		const obstacle = " is none of the tested versions, go1.26, go1.27"
		if got := Obstacle(); want && got != "" || !want && got != v+obstacle {
			t.Errorf("%q: %q", v, got)
		}
	}
}

// On a system where nobody has tested it, assembly does not run though it may fit.
func TestOnlyTestedSystemsAreKnown(t *testing.T) {
	mustFit(t)
	defer func(s string) { system = s }(system)
	system = "openbsd"
	if got := Obstacle(); got != "openbsd is none of the tested systems, linux" {
		t.Errorf("%q", got)
	}
}

// mustFit skips where the assembly cannot run. Whether this system or version of Go
// was tested does not matter: that is what these tests are for.
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

// Obstacle looks at all that assembly relies on, each in turn.
func TestObstacleLooksAtEverything(t *testing.T) {
	mustFit(t)
	defer func(v, s string, probe func(a, b, c, d, e uintptr) (v, w, x, y, z uintptr), processor func() uintptr) {
		version, system, assembly.probe, assembly.processor = v, s, probe, processor
	}(version, system, assembly.probe, assembly.processor)
	version, system = tested[0], testedSystems[0]
	if o := Obstacle(); o != "" {
		t.Fatal(o)
	}
	for i := range code {
		code[i]++
		if counts := i >= 6 && i < 10; (Obstacle() == "") != counts { // the count of pins
			t.Errorf("byte %d of procPin is another, and there is no obstacle: %t", i, !counts)
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
		if Obstacle() == "" {
			t.Errorf("result %d is in another register, and there is no obstacle", i)
		}
	}
	assembly.probe = probe
	assembly.processor = func() uintptr { return processor() + 1 }
	if Obstacle() == "" {
		t.Error("the processor is another, and there is no obstacle")
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
