package pool_test

import (
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/epoch"
	"github.com/freehold-go/freehold/pool"
)

// Each batch of retired blocks waits for its own readers, even if the previous batch is
// freed early.
func TestEachRetiredBatchWaitsForItsGuards(t *testing.T) {
	const batch = 64
	b := newBlocks(t, 64, 8, &pool.Options{MaxBlocks: 3 * batch})
	blocks := make([][]byte, 3*batch)
	freehold.Must(b.GetBatch(blocks))
	var guards []epoch.Guard
	for i, r := range blocks {
		if i%batch == 0 { // before each batch
			guards = append(guards, b.Enter())
		}
		b.Retire(r)
	}
	again := make([][]byte, 3*batch)
	for i, g := range guards {
		if n := b.Stats().Retired; n != (3-i)*batch {
			t.Errorf("%d blocks are retired with %d guards left", n, 3-i)
		}
		g.Leave()
		n, _ := b.GetBatch(again)
		if n != batch {
			t.Fatalf("%d blocks are free after guard %d has left", n, i)
		}
		first := map[*byte]bool{}
		for _, r := range blocks[i*batch : (i+1)*batch] {
			first[&r[0]] = true
		}
		for _, r := range again[:n] {
			if !first[&r[0]] {
				t.Errorf("a block of another batch after guard %d has left", i)
			}
		}
	}
	b.PutBatch(again[:batch])
}

// Trim returns a chunk of retired blocks as soon as the guards have left.
func TestTrimTakesRetiredBlocks(t *testing.T) {
	b := newBlocks(t, 64, 8, nil)
	g := b.Enter()
	b.Retire(freehold.Must(b.Alloc(64, 8)))
	b.Trim()
	if s := b.Stats(); s.Retired != 1 || s.Chunks != 1 {
		t.Errorf("under a guard: %+v", s)
	}
	g.Leave()
	b.Trim()
	if s := b.Stats(); s.Retired != 0 || s.Reserved != 0 {
		t.Errorf("after the guard left: %+v", s)
	}
}
