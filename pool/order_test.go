// Order: operations that must wait for the holders of slots.

package pool

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// mustWait checks that act waits for the holders of slots. This goroutine enters a slot
// and calls hold with it; another goroutine then calls act. begun reports that act has
// reached its wait. over reports that act has passed it, which must not happen before
// this goroutine leaves.
func mustWait(t *testing.T, b *Blocks, hold func(slot int), act func(), begun, over func() bool) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("one processor: nobody can hold a slot while another goroutine runs")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection would wait for the holder
	runtime.GC()
	var started, held atomic.Bool
	done := make(chan bool)
	go func() {
		defer close(done)
		started.Store(true)
		for !held.Load() {
		}
		act()
	}()
	for !started.Load() {
		runtime.Gosched()
	}
	slot := b.stacks.Enter()
	hold(slot)
	held.Store(true)
	came := within(10*time.Second, begun)
	early := came && within(5*time.Millisecond, over)
	b.stacks.Leave(slot)
	<-done
	if !came {
		t.Fatal("the call did not begin while a slot was held; the test needs that")
	}
	if early {
		t.Fatal("did not wait for the holder of a slot")
	}
	if !over() {
		t.Fatal("the call did not do what the test waits for")
	}
}

// within reports whether is becomes true in time. It may be called while a slot is held.
func within(d time.Duration, is func() bool) bool {
	for start := time.Now(); time.Since(start) < d; {
		if is() {
			return true
		}
	}
	return false
}

// A drain takes the blocks of a stack only after its holder has left, as the holder may
// get or put one.
func TestDrainWaitsForWhoHoldsAStack(t *testing.T) {
	b := NewBlocks(alloctest.New(t), 64, 8, nil)
	defer b.Close()
	for range 3 {
		r := freehold.Must(b.Alloc(64, 8))
		b.addStacks()
		var held *stack
		var at int
		var drained atomic.Bool
		mustWait(t, b,
			func(slot int) {
				at, held = slot, b.stacks.Entry(slot)
				b.push(held, addrOf(r))
			},
			func() { b.drain(); drained.Store(true) },
			func() bool { return b.stacks.Entry(at) != held },
			drained.Load)
	}
}

// Trim returns a chunk to the parent only after every goroutine has left its slot that may
// have found the chunk in the table.
func TestTrimWaitsForWhoLooksAtAChunk(t *testing.T) {
	parent := &watched{Allocator: alloctest.New(t)}
	b := NewBlocks(parent, 64, 8, nil)
	defer b.Close()
	for range 3 {
		b.Free(freehold.Must(b.Alloc(64, 8)))
		b.drain()
		parent.frees.Store(0)
		table := b.table.Load()
		mustWait(t, b,
			func(int) {},
			b.Trim,
			func() bool { return b.table.Load() != table },
			func() bool { return parent.frees.Load() > 0 })
	}
}

// watched is a parent that counts Frees.
type watched struct {
	freehold.Allocator
	frees atomic.Int64
}

func (w *watched) Free(r []byte) {
	w.frees.Add(1)
	w.Allocator.Free(r)
}

// Of concurrent advances of a word from one value, one succeeds.
func TestAdvanceHasOneWinner(t *testing.T) {
	const tries = 200000
	var w word
	var wins atomic.Uint64
	done := make(chan bool)
	for range 2 {
		go func() {
			defer func() { done <- true }()
			n := uint64(0)
			for range tries {
				if w.advance(w.load()) {
					n++
				}
			}
			wins.Add(n)
		}()
	}
	<-done
	<-done
	if wins.Load() != w.load() {
		t.Errorf("%d won, and the word is %d", wins.Load(), w.load())
	}
}
