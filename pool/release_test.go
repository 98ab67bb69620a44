package pool

import (
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
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

// The generations of a new chunk are above those of every block of the chunks given
// back, not of the last block only.
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
