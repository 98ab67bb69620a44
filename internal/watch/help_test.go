// What the tests here share.

package watch_test

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/asan"
	"github.com/freehold-go/freehold/internal/heap"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/poison"
	"github.com/freehold-go/freehold/internal/watch"
)

type (
	Heap    = heap.Heap
	Options = heap.Options
)

// sampleAt sets the rate for a test, and makes chance the same each time.
func sampleAt(t testing.TB, rate int) {
	was := watch.SetSampleRate(rate)
	watch.Seed()
	t.Cleanup(func() { watch.SetSampleRate(was) })
}

// guardAt makes one block in n a guarded block for the rest of the test.
func guardAt(t testing.TB, n, perSecond int) {
	if n > 0 && !watch.CanGuard {
		t.Skip("no guards in this build")
	}
	was := watch.SetGuardRate(n, perSecond)
	watch.Seed()
	t.Cleanup(func() { watch.SetGuardRate(was, 0) })
}

// keepFreed gives the blocks of a test red zones, and sets the bytes of the quarantine.
func keepFreed(t testing.TB, bytes int) {
	was := watch.SetQuarantine(bytes)
	t.Cleanup(func() { watch.SetQuarantine(was) })
}

// keepGuarded bounds how many guarded blocks the heaps of a test have in quarantine, and their
// bytes of addresses.
func keepGuarded(t testing.TB, blocks int, bytes uintptr) {
	t.Cleanup(watch.SetGuardQuarantine(blocks, bytes))
}

// newHeap returns a heap without a timer, which is verified and closed after the test.
func newHeap(t testing.TB, o Options) *Heap {
	if o.Decay == 0 {
		o.Decay = -1
	}
	h := pin.New[Heap]()
	h.Init(o)
	t.Cleanup(func() {
		if !h.Closed() && !t.Failed() {
			check(t, h)
			h.Close()
		}
	})
	return h
}

// check verifies the watched blocks of h. No other goroutine uses h.
func check(t testing.TB, h *Heap) {
	t.Helper()
	if err := h.Watch().Verify(); err != nil {
		t.Fatal(err)
	}
}

func alloc(t testing.TB, h *Heap, size int) []byte {
	t.Helper()
	b, err := h.Alloc(size, 8, false)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

//go:noinline
func allocHere(h *Heap, size int) []byte {
	b, err := h.Alloc(size, 8, false)
	if err != nil {
		panic(err)
	}
	return b
}

//go:noinline
func freeHere(h *Heap, b []byte) { h.Free(b) }

func addrOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// at returns n bytes from an offset to the beginning of b on, which may be outside.
func at(b []byte, offset, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), offset)), n)
}

// behind returns n bytes from the end of b on.
func behind(b []byte, n int) []byte { return at(b, len(b), n) }

var fill = poison.FillBytes

func allSet(b []byte, v byte) bool { return poison.Other(b, v) < 0 }

var panicOf = panics.Of

// mustPanic checks that f panics with all of want, in that order.
func mustPanic(t *testing.T, f func(), want ...string) {
	t.Helper()
	panics.Want(t, "..."+strings.Join(want, "...")+"...", f)
}

// runs counts the runs of each test. The counts of a name go on when its heap is closed.
var runs = map[string]int{}

// nameOf returns a name for the heaps of this run of a test.
func nameOf(t *testing.T) string {
	name, n := t.Name(), runs[t.Name()]
	t.Cleanup(func() { runs[name] = n + 1 })
	return fmt.Sprint(name, " ", n, " ")
}

// watchesZones reports whether a test may write to red zones: with -asan that ends the
// process.
const watchesZones = !asan.Enabled

// ways are the ways to watch every block of a test.
var ways = []struct {
	name    string
	sampled bool
	zones   bool
	guarded bool
}{
	{name: "sampled", sampled: true},
	{name: "zones", zones: true},
	{name: "zones, sampled", zones: true, sampled: true},
	{name: "guarded", guarded: true},
	{name: "guarded, sampled", guarded: true, sampled: true},
	{name: "guarded, zones", guarded: true, zones: true},
}

// eachWay runs a test in each way to watch every block that this build has.
func eachWay(t *testing.T, test func(t *testing.T)) {
	for _, w := range ways {
		if w.zones && !watchesZones || w.guarded && !watch.CanGuard {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			if w.sampled {
				sampleAt(t, 1)
			}
			if w.zones {
				keepFreed(t, 1<<20)
			}
			if w.guarded {
				guardAt(t, 1, 0)
			}
			test(t)
		})
	}
}

// eachSampled is eachWay for those in which blocks are sampled too.
func eachSampled(t *testing.T, test func(t *testing.T)) {
	eachWay(t, func(t *testing.T) {
		if watch.SampleRate() > 0 {
			test(t)
		}
	})
}

// usage returns the samples' usage of the named heap, by tag.
func usage(name string) map[string]watch.Usage {
	all := map[string]watch.Usage{}
	for _, p := range watch.Profile() {
		if p.Heap == name {
			u := all[p.Tag]
			u.AllocObjects += p.AllocObjects
			u.AllocBytes += p.AllocBytes
			u.FreeObjects += p.FreeObjects
			u.FreeBytes += p.FreeBytes
			u.CloseObjects += p.CloseObjects
			u.CloseBytes += p.CloseBytes
			all[p.Tag] = u
		}
	}
	return all
}

// wantUsage checks the usage without a tag.
func wantUsage(t *testing.T, name string, allocs, allocBytes, frees, freeBytes int64) {
	t.Helper()
	u := usage(name)[""]
	if got, want := [...]int64{u.AllocObjects, u.AllocBytes, u.FreeObjects, u.FreeBytes}, [...]int64{allocs, allocBytes, frees, freeBytes}; got != want {
		t.Errorf("%s: blocks and bytes allocated, freed: %d, want %d", name, got, want)
	}
}

// live returns how many records h has of live blocks.
func live(h *Heap) int {
	n, _, _ := h.Watch().Count()
	return n
}
