package pool

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/poison"
)

// A chunk that stays when others are returned serves blocks again.
func TestChunkThatStaysAtTrimServesBlocks(t *testing.T) {
	b := NewBlocks(alloctest.New(t), 64, 8, nil)
	defer b.Close()
	live := freehold.Must(b.Alloc(64, 8))
	var others [][]byte
	for len(b.central.chunks) < 2 {
		others = append(others, freehold.Must(b.Alloc(64, 8)))
	}
	for _, block := range others {
		b.Free(block)
	}
	b.Trim()
	if n := len(b.central.chunks); n != 1 {
		t.Fatalf("%d chunks after Trim, want that of the live block", n)
	}
	freehold.Must(b.Alloc(64, 8))
	if n := len(b.central.chunks); n != 1 {
		t.Errorf("%d chunks, though the first has free blocks", n)
	}
	b.Free(live)
}

// A block that is freed while Trim returns other chunks is in its own afterwards.
func TestBlockFreedDuringTrimIsNotLost(t *testing.T) {
	defer poison.Set(false)() // a checked pool has no stacks
	b := NewBlocks(alloctest.New(t), 64, 8, nil)
	defer b.Close()
	live := freehold.Must(b.Alloc(64, 8))
	var others [][]byte
	for len(b.central.chunks) < 2 {
		others = append(others, freehold.Must(b.Alloc(64, 8)))
	}
	b.PutBatch(others)
	b.drain()
	b.addStacks()
	slot := b.stacks.Enter()
	held := b.stacks.Value(slot)
	b.stacks.Leave(slot)
	waits := 0
	defer onWait(b, func() {
		if waits++; waits == 1 { // by a goroutine that held the stack
			b.push(held, addrOf(live))
		}
	})()
	for want := 1; want >= 0; want-- {
		b.Trim()
		if s := b.Stats(); s.Chunks != want || s.Live != 0 {
			t.Errorf("%+v, want %d chunks", s, want)
		}
	}
}

// Blocks that do not fit on the stack go to the central free list.
func TestStoreLosesNoBlock(t *testing.T) {
	defer poison.Set(false)()                       // a checked pool has no stacks
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one stack
	b := NewBlocks(alloctest.New(t), 64, 8, &Options{MaxBlocks: 3 * 64})
	defer b.Close()
	var batch [64]entry
	for range 3 { // two fill the stack
		n := freehold.Must(b.take("", batch[:]))
		b.store(0, batch[:n])
	}
	if n := b.CentralFree(); n != 64 {
		t.Errorf("%d blocks went on, want 64", n)
	}
}

// A stack of large blocks is shorter than its array.
func TestPutBatchKeepsToTheCapacity(t *testing.T) {
	b := NewBlocks(alloctest.New(t), maxStackBytes/4, 8, nil)
	defer b.Close()
	blocks := make([][]byte, 10)
	freehold.Must(b.GetBatch(blocks))
	b.PutBatch(blocks)
	b.stacks.Each(func(s *stack) {
		if n := s.n.load(); n > 4 {
			t.Errorf("%d blocks on a stack for 4", n)
		}
	})
}

// A block that two goroutines freed at once leaves the stack with the panic, so the next
// call works.
func TestBlockFreedTwiceLeavesTheStack(t *testing.T) {
	defer poison.Set(false)() // a checked pool has no stacks
	b := NewBlocks(alloctest.New(t), 64, 8, nil)
	defer b.Close()
	r := freehold.Must(b.Alloc(64, 8))
	b.FreeAtOnce(unsafe.Pointer(&r[0]))
	entries := func() (n uint64) {
		b.stacks.Each(func(s *stack) { n += s.n.load() })
		return n
	}
	before := entries()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		b.dropLive("", 0)
	}()
	if n := entries(); n != before-1 {
		t.Errorf("%d entries, want one less than %d", n, before)
	}
}

// A new chunk begins above the highest generation of the chunks that were given back, whichever
// block had it.
func TestGenerationsRiseAboveTheHighest(t *testing.T) {
	p := New[uint64](alloctest.New(t), nil)
	defer p.Close()
	b := &p.blocks
	freehold.Must(b.take("", make([]entry, 1)))
	c := b.central.chunks[0]
	highest := lastGen.Load() + 100
	b.status(c, 0).gen().store(highest)
	b.reset("")
	b.trim("")
	if len(b.central.chunks) != 0 {
		t.Fatal("the chunk was not given back")
	}
	if lastGen.Load() <= highest {
		t.Errorf("a new chunk begins at generation %d, after %d", lastGen.Load(), highest)
	}
}
