// Random programs, by one goroutine and by several, and blocks that one goroutine frees for
// another.

package alloctest

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/poison"
)

// randomProgram returns a program for RunProgram.
func randomProgram(r *rand.Rand, instructions int) []byte {
	prog := make([]byte, instructions*instructionBytes)
	for i := range prog {
		prog[i] = byte(r.Uint32())
	}
	return prog
}

// checkPrograms: random programs give correct results.
func checkPrograms(t testing.TB, a freehold.Allocator, o Options) {
	programs := 8
	if testing.Short() {
		programs = 2
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range programs {
		RunProgram(t, a, randomProgram(r, 150))
	}
}

// checkConcurrent: random programs in several goroutines at once.
func checkConcurrent(t testing.TB, a freehold.Allocator, o Options) {
	if !o.Concurrent {
		t.Skip("not for concurrent use")
	}
	programs := 3 // of each goroutine
	if testing.Short() {
		programs = 1
	}
	var wg sync.WaitGroup
	for g := range 4 {
		r := rand.New(rand.NewPCG(5, uint64(g)))
		wg.Go(func() {
			for range programs {
				RunProgram(t, a, randomProgram(r, 150))
			}
		})
	}
	wg.Wait()
}

// checkHandOver: a goroutine may free blocks of another, and a third may reuse
// them.
func checkHandOver(t testing.TB, a freehold.Allocator, o Options) {
	if !o.Concurrent {
		t.Skip("not for concurrent use")
	}
	const makers, rounds = 2, 2000
	blocks := make(chan held, 64)
	var making, taking sync.WaitGroup
	for g := range makers {
		making.Go(func() {
			for i := range rounds {
				b, err := a.Alloc(1+(i*37+g*11)%min(1000, o.MaxSize), 8)
				if err != nil {
					t.Errorf("Alloc: %v", err)
					return
				}
				h := held{b: b, p: newPattern()}
				h.p.fill(b)
				blocks <- h
			}
		})
		taking.Go(func() {
			for h := range blocks {
				if i := h.p.damage(h.b, 0); i >= 0 {
					t.Errorf("byte %d of a block of %d bytes has changed on the way to another goroutine", i, len(h.b))
				}
				poison.FillBytes(h.b, 0xFF)
				a.Free(h.b)
			}
		})
	}
	making.Wait()
	close(blocks)
	taking.Wait()
}
