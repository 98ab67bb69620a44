// Order: what must not happen before something else has.

package pool

import (
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/poison"
	"github.com/freehold-go/freehold/internal/test/await"
)

// onWait calls f whenever b is about to wait for the holders of its slots, until restore is called.
func onWait(b *Blocks, f func()) (restore func()) {
	return pin.OnWait(func(h *pin.Holders) {
		if h == &b.stacks.Holders {
			f()
		}
	})
}

// A drain takes the blocks of a stack only after its holder has left, who may
// still put one there.
func TestDrainWaitsForWhoHoldsAStack(t *testing.T) {
	defer poison.Set(false)() // a checked pool has no stacks
	b := NewBlocks(alloctest.New(t), 64, 8, &Options{MaxBlocks: 2})
	defer b.Close()
	early, late := freehold.Must(b.Alloc(64, 8)), freehold.Must(b.Alloc(64, 8))
	b.addStacks()
	slot := b.stacks.Enter()
	held := b.stacks.Value(slot)
	b.push(held, addrOf(early))
	b.stacks.Leave(slot)
	waits := 0
	defer onWait(b, func() {
		waits++
		if b.stacks.Slot(slot).Value() == held {
			t.Error("the stack is still there for the next holder")
		}
		if done, _ := b.push(held, addrOf(late)); !done {
			t.Error("the holder cannot put a block on the stack")
		}
	})()
	b.drain()
	if n := b.CentralFree(); waits != 1 || n != 2 {
		t.Errorf("after %d waits %d blocks are free, want 1 and 2", waits, n)
	}
}

// Trim gives a chunk to the parent only after everybody has left who may have
// found it in the table.
func TestTrimWaitsForWhoLooksAtAChunk(t *testing.T) {
	parent := &watched{Allocator: alloctest.New(t)}
	b := NewBlocks(parent, 64, 8, nil)
	defer b.Close()
	b.Free(freehold.Must(b.Alloc(64, 8)))
	b.drain()
	parent.frees = 0
	table, waits := b.table.Load(), 0
	defer onWait(b, func() {
		waits++
		if b.table.Load() == table {
			t.Error("the chunk is still in the table")
		}
		if parent.frees > 0 {
			t.Error("the chunk was given back before")
		}
	})()
	b.Trim()
	if waits != 1 || parent.frees == 0 {
		t.Errorf("%d waits, and %d blocks were given back", waits, parent.frees)
	}
}

// A slot has its chunk and its statuses before readers find it.
func TestChunkIsInItsSlotBeforeItIsFound(t *testing.T) {
	b := NewBlocks(alloctest.New(t), 64, 8, nil)
	defer b.Close()
	added := 0
	onAdd = func(s *slot) {
		added++
		if s.base.Load() != emptySlot {
			t.Error("a reader finds the slot already")
		}
		if c := s.chunk.Load(); c == nil || s.statuses.Load() != c.statuses {
			t.Error("the slot is not ready for readers")
		}
	}
	defer func() { onAdd = nil }()
	b.Free(freehold.Must(b.Alloc(64, 8)))
	if added != 1 {
		t.Errorf("%d chunks added, want 1", added)
	}
}

// watched counts the calls of its Free.
type watched struct {
	freehold.Allocator
	frees int
}

func (w *watched) Free(r []byte) {
	w.frees++
	w.Allocator.Free(r)
}

// A batch of retired blocks is on the retire list until it is free to others: a Get that finds
// neither would say that the pool is exhausted.
func TestRetiredBlocksAreNeverNowhere(t *testing.T) {
	b := NewBlocks(alloctest.New(t), 64, 8, &Options{MaxBlocks: 1})
	defer b.Close()
	b.Retire(freehold.Must(b.Alloc(64, 8)))
	b.central.mu.Lock()
	done := make(chan bool, 1)
	go func() { done <- b.collect(true) }()
	if !await.Lock("pool.(*Blocks).collect", done) {
		t.Error("collect did not wait")
	}
	b.retireList.mu.Lock()
	if b.retireList.queue.Len() != 1 {
		t.Error("the block is neither retired nor free")
	}
	b.retireList.mu.Unlock()
	b.central.mu.Unlock()
	if !<-done || b.exhausted() {
		t.Error("the block was not freed")
	}
	b.Retire(freehold.Must(b.Alloc(64, 8)))
	if b.exhausted() {
		t.Error("the pool is exhausted, and the next collect would free a block")
	}
}
