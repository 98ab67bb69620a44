//go:build !race && !freehold_portable

package pin

import (
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
)

// Assembly without a pin is in use with the version of Go and on the system that
// it was written for. With others this says that runtime_amd64.go needs another
// look: on Windows the runtime keeps the processor elsewhere.
func TestKnown(t *testing.T) {
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
	if !strings.HasPrefix(runtime.Version(), "go1.26") || runtime.GOOS != "linux" {
		t.Skipf("built with %s for %s: compiler %v, runtime %v", runtime.Version(), runtime.GOOS, compiler, known)
	}
	t.Errorf("compiler %v, runtime %v", compiler, known)
}

// The assembly and procPin find the same processor, wherever a goroutine runs
// and however many processors there are.
func TestProcessor(t *testing.T) {
	if !Known() {
		t.Skip("assembly cannot know")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	processor := Func[func() uintptr](&entry.processor)
	var places Places
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
					want := places.Enter()
					got := processor()
					places.Leave(want)
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
