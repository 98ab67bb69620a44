// Loads in which the blocks of two goroutines mix: in their order, or because one frees what the
// other has allocated. Larson, Xmalloc and Mstress have the sizes and numbers of the programs of
// these names in mimalloc-bench, but touch only the first byte of a block.

package alloc

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/freehold-go/freehold/lab/bench/measure"
)

// BenchmarkScatter allocates many blocks, and frees them in a random order.
func BenchmarkScatter(b *testing.B) {
	each(b, oneSize, oneOrTwo, func(b *testing.B, goroutines, size, _ int) {
		measure.Loops(b, goroutines, 1, func(i int) measure.Loop {
			live, order, random := make([]block, slots), make([]uint32, slots), measure.Seed(i)
			for i := range order {
				at := measure.Below(random.Next(), uint64(i+1))
				order[i], order[at] = order[at], uint32(i)
			}
			next, freeing := 0, false
			return func(n int) (sum uint64) {
				for half := 0; half < 2*n; {
					end := min(slots, next+2*n-half)
					half += end - next
					if freeing {
						sum += freeInOrder(live, order[next:end])
					} else {
						allocAll(live[next:end], size)
					}
					if next = end; next == slots {
						next, freeing = 0, !freeing
					}
				}
				return sum + uint64(n*size)
			}
		})
	})
}

//go:noinline
func allocAll(live []block, size int) {
	for i := range live {
		b := must(alloc(size))
		touch(b)
		live[i] = b
	}
}

//go:noinline
func freeInOrder(live []block, order []uint32) (sum uint64) {
	for _, i := range order {
		free(live[i])
		sum += uint64(i)
	}
	return sum
}

// BenchmarkLarson is a server: a goroutine replaces random ones of 5,000 blocks 500,000 times, and
// then leaves them to another one.
func BenchmarkLarson(b *testing.B) {
	const blocks, turn = 5000, 500_000
	each(b, []sizes{{8, 1000}}, oneOrTwo, func(b *testing.B, goroutines, least, most int) {
		var left atomic.Pointer[[]block]
		random := measure.Seed(goroutines)
		first := fillTable(blocks, &random, least, most)
		left.Store(&first)
		measure.Loops(b, goroutines, 1, func(i int) measure.Loop {
			random, done := measure.Seed(i), 0
			own := fillTable(blocks, &random, least, most)
			live := &own
			return func(n int) (sum uint64) {
				for n > 0 {
					now := min(n, turn-done)
					sum += replace(*live, &random, least, most, now)
					n -= now
					if done += now; done == turn {
						live, done = left.Swap(live), 0
					}
				}
				return sum
			}
		})
	})
}

// A batch is the blocks that move at once in Xmalloc.
type batch [4096]block

// batches is a stack of batches.
type batches struct {
	mu  sync.Mutex
	all []*batch
}

// take pops a batch. While there is none, it gives the processor away, and it returns nil after
// done.
func (s *batches) take(done *atomic.Bool) *batch {
	for {
		ended := done.Load()
		s.mu.Lock()
		if n := len(s.all) - 1; n >= 0 {
			b := s.all[n]
			s.all = s.all[:n]
			s.mu.Unlock()
			return b
		}
		s.mu.Unlock()
		if ended {
			return nil
		}
		runtime.Gosched()
	}
}

func (s *batches) put(b *batch) {
	s.mu.Lock()
	s.all = append(s.all, b)
	s.mu.Unlock()
}

// BenchmarkXmalloc has one goroutine allocate blocks and another one free them, in batches. Up to
// 100 batches wait, the last one first.
func BenchmarkXmalloc(b *testing.B) {
	for _, s := range []sizes{{64, 64}, {8, 2048}} {
		measure.Run(b, s.String(), peer, func(b *testing.B) {
			several = true
			empty, full, freed := &batches{all: make([]*batch, 0, 100)}, &batches{all: make([]*batch, 0, 100)}, make(chan struct{})
			var never, done atomic.Bool
			for range 100 {
				empty.put(new(batch))
			}
			go func() {
				defer close(freed)
				for b := full.take(&done); b != nil; b = full.take(&done) {
					for _, block := range b {
						free(block)
					}
					empty.put(b)
				}
			}()
			measure.Loops(b, 1, len(batch{}), func(int) measure.Loop {
				random := measure.Seed(0)
				return func(n int) (sum uint64) {
					for range n {
						b := empty.take(&never)
						sum += b.fill(&random, s)
						full.put(b)
					}
					return sum
				}
			})
			done.Store(true)
			<-freed
		})
	}
}

//go:noinline
func (b *batch) fill(random *measure.Random, s sizes) (sum uint64) {
	rnd, least, span := *random, uint64(s[0]), uint64(s[1]-s[0]+1)
	for i := range b {
		size := measure.From(rnd.Next(), least, span)
		block := must(alloc(int(size)))
		touch(block)
		b[i] = block
		sum += size
	}
	*random = rnd
	return sum
}

// BenchmarkMstress replaces random ones of 4,000 blocks, of which one in a hundred is a hundred
// times as large, and exchanges one with a table of all goroutines every fourth time. After 8,000
// blocks a goroutine frees all that it has, as if it ended.
func BenchmarkMstress(b *testing.B) {
	each(b, []sizes{{8, 1024}}, oneOrTwo, func(b *testing.B, goroutines, least, most int) {
		var shared [1000]atomic.Pointer[cell]
		for i := range shared {
			shared[i].Store(new(cell))
		}
		measure.Loops(b, goroutines, 1, func(i int) measure.Loop {
			s := &stress{shared: shared[:], least: uint64(least), span: uint64(most - least + 1), random: measure.Seed(i)}
			cells := make([]cell, len(s.cells))
			for i := range s.cells {
				s.cells[i] = &cells[i]
			}
			return s.loop
		})
	})
}

// A cell is a place for a block that goroutines exchange, or nil.
type cell struct{ b block }

type stress struct {
	cells       [4000]*cell
	done        int // blocks since the last end
	shared      []atomic.Pointer[cell]
	least, span uint64
	random      measure.Random
}

//go:noinline
func (s *stress) loop(n int) (sum uint64) {
	for range n {
		x, y := s.random.Next(), s.random.Next()
		slot, size := measure.Below(x, uint64(len(s.cells))), measure.From(x, s.least, s.span)
		if measure.Below(y, 100) == 0 {
			size *= 100
		}
		c := s.cells[slot]
		if c.b != nil {
			free(c.b)
		}
		c.b = must(alloc(int(size)))
		touch(c.b)
		if y%4 == 0 {
			s.cells[slot] = s.shared[measure.From(y, 0, uint64(len(s.shared)))].Swap(c)
		}
		sum += slot ^ size
		if s.done++; s.done == 2*len(s.cells) {
			s.end()
		}
	}
	return sum
}

// end frees all blocks.
func (s *stress) end() {
	for _, c := range s.cells {
		if c.b != nil {
			free(c.b)
			c.b = nil
		}
	}
	s.done = 0
}
