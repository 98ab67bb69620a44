// The process itself: budgets on the runtime and the heaps.

package budget

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/vm"
)

func TestBudgetOfTheProcess(t *testing.T) {
	limit, percent := debug.SetMemoryLimit(-1), debug.SetGCPercent(100)
	defer debug.SetGCPercent(percent)
	debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(limit)
	t.Setenv("GOGC", "100")
	most := int64(256 * mib)
	if vm.GoBacked {
		most += 2 * newRuntime().read().held // by heaps of other tests
	}
	b, err := Start(&Options{Limit: most})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	st := b.Stats()
	if st.Limit > most || st.GoHeld <= 0 || st.GoLimit >= st.Limit || !st.UserGC {
		t.Errorf("%+v", st)
	}
	h := freehold.NewHeap(nil)
	defer h.Close()
	block, err := h.Alloc(64*mib, 8)
	if err != nil {
		t.Fatal(err)
	}
	b.tick()
	after := b.Stats()
	if vm.GoBacked {
		if after.OffHeap != 0 {
			t.Errorf("off-heap memory is Go's own, and %d bytes of it count", after.OffHeap)
		}
	} else if after.OffHeap < 64*mib || after.GoLimit > st.GoLimit-60*mib {
		t.Errorf("with 64 MiB: %+v", after)
	}
	h.Free(block)
	b.Stop()
	if got := debug.SetMemoryLimit(-1); got != math.MaxInt64 {
		t.Errorf("after Stop the limit is %d", got)
	}
}

// An account of the process takes what there is room for, and its blocks are not more than that.
func TestRootOfTheProcess(t *testing.T) {
	if vm.GoBacked {
		t.Skip("blocks are Go's own memory, of which the last collection tells")
	}
	b, err := Start(&Options{Limit: 256 * mib, GoHeap: 16 * mib})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	root := b.Account()
	defer root.Close()
	a := newAccount(t, root, "a", 0)
	const size = 4 * mib // that nobody touches
	for {
		if _, err = a.Alloc(size, 8); err != nil {
			break
		}
	}
	wantFull(t, err, root)
	st := b.Stats()
	if st.OffHeap > st.Limit-st.Headroom || st.Account.Used > st.OffHeap || st.Pressure.Level != Hard {
		t.Errorf("%v", st)
	}
}

// The runtime's metrics and its setters return the same settings.
func TestRuntimeFigures(t *testing.T) {
	limit, percent := debug.SetMemoryLimit(5*gib), debug.SetGCPercent(77)
	defer debug.SetGCPercent(percent)
	defer debug.SetMemoryLimit(limit)
	r := newRuntime()
	if g := r.read(); g.limit != 5*gib || g.percent != 77 || g.held <= 0 || g.outside <= 0 || g.outside >= g.held {
		t.Errorf("%+v", g)
	}
	r.setPercent(-1)
	r.setLimit(math.MaxInt64)
	r.freeOSMemory()
	if g := r.read(); g.limit != math.MaxInt64 || g.percent != -1 || g.live <= 0 || g.cycles == 0 {
		t.Errorf("%+v", g)
	}
}

// Memory that Go has free, or has given back, is neither outside of its heap nor, when it is given
// back, held.
func TestRuntimeFiguresOfFreeMemory(t *testing.T) {
	const size, noise = 64 * mib, 24 * mib
	r := newRuntime()
	r.freeOSMemory()
	before := r.read()
	block := make([]byte, size)
	with := r.read()
	runtime.KeepAlive(block)
	runtime.GC()
	free := r.read()
	r.freeOSMemory()
	after := r.read()
	if grown := with.held - before.held; grown < size-noise {
		t.Errorf("with %d bytes Go holds %d more", size, grown)
	}
	if shrunk := with.held - after.held; shrunk < size-noise {
		t.Errorf("without %d bytes Go holds %d less", size, shrunk)
	}
	for name, g := range map[string]goFigures{"with the block": with, "with a free block": free, "after a reclaim": after} {
		if more := g.outside - before.outside; more > noise {
			t.Errorf("%s: %d more bytes are outside", name, more)
		}
	}
}

// The collector goes through stacks too, so they count as live.
func TestRuntimeFiguresOfStacks(t *testing.T) {
	const noise = 4 * mib
	r := newRuntime()
	r.freeOSMemory()
	before := r.read()
	var with goFigures
	done := make(chan int)
	go func() {
		done <- recurse(16*mib/1024, func() { r.freeOSMemory(); with = r.read() })
	}()
	<-done
	if more := with.live - before.live; more < 16*mib-noise {
		t.Errorf("with 16 MiB of stack %d more bytes are live", more)
	}
}

// recurse calls f with n KiB of stack in use at least.
func recurse(n int, f func()) int {
	var frame [1024]byte
	if n == 0 {
		f()
		return 0
	}
	frame[n%len(frame)] = byte(n)
	return recurse(n-1, f) + int(frame[0])
}

// BenchmarkTick is a tick of the process's budget, without the account of the process and with it.
func BenchmarkTick(b *testing.B) {
	for _, account := range []bool{false, true} {
		b.Run(fmt.Sprintf("account=%t", account), func(b *testing.B) {
			budget, err := Start(&Options{Limit: 1 << 31})
			if err != nil {
				b.Fatal(err)
			}
			defer budget.Stop()
			if account {
				defer budget.Account().Close()
			}
			for b.Loop() {
				budget.tick()
			}
		})
	}
}
