// Memory: how much of it live blocks take, all of their bytes touched.
//
// The table of blocks is there and touched before the count starts, so that
// all that the process grows by is the allocator's.

package alloc

import (
	"runtime"
	"testing"

	"github.com/freehold-go/freehold/lab/bench/measure"
)

func BenchmarkMemory(b *testing.B) {
	for _, s := range []sizes{{16, 1024}, {16, 16}, {64, 64}, {256, 256}, {1 << 10, 1 << 10}, {4 << 10, 4 << 10}} {
		measure.Run(b, s.String(), peer, func(b *testing.B) {
			p := newPopulation(b, s)
			p.live(b)
			p.report(b)
		})
	}
}

// BenchmarkHuge has 100 million live blocks.
func BenchmarkHuge(b *testing.B) {
	s := sizes{16, 64}
	measure.Run(b, s.String(), peer, func(b *testing.B) {
		p := newPopulation(b, s)
		p.live(b)
		grown := float64(p.report(b))
		b.ReportMetric((grown-float64(p.requested))/float64(len(p.blocks)), "overhead-B/block")
	})
}

// BenchmarkMemoryChurn replaces blocks of a full table at random, twice as often as there are
// blocks, so that what fragmentation costs shows.
func BenchmarkMemoryChurn(b *testing.B) {
	s := sizes{16, 1024}
	measure.Run(b, s.String(), peer, func(b *testing.B) {
		p := newPopulation(b, s)
		lengths := make([]uint32, len(p.blocks))
		clear(lengths)
		p.before += uint64(4 * len(lengths))
		place := func(i, size uint64) {
			b := must(alloc(int(size)))
			fill(bytes(b, int(size)))
			p.blocks[i], lengths[i] = b, uint32(size)
			p.requested += size
		}
		for i := range p.blocks {
			place(uint64(i), p.next())
		}
		measure.Once(b, 2*len(p.blocks), func() {
			for range 2 * len(p.blocks) {
				x := p.random.Next()
				slot := measure.Below(x, uint64(len(p.blocks)))
				p.requested -= uint64(lengths[slot])
				free(p.blocks[slot])
				place(slot, measure.From(x, p.least, p.span))
			}
		})
		p.report(b)
	})
}

type population struct {
	blocks            []block
	least, span       uint64
	random            measure.Random
	requested, before uint64 // bytes in live blocks; resident before there were any
}

func newPopulation(b *testing.B, s sizes) *population {
	n := measure.Size().Blocks(b.Name()[len("Benchmark"):], (s[0]+s[1])/2)
	p := &population{
		blocks: make([]block, n),
		least:  uint64(s[0]), span: uint64(s[1] - s[0] + 1),
		random: measure.Seed(0),
	}
	clear(p.blocks)         // touches it: fresh memory from the system is not in RSS yet
	free(must(alloc(s[0]))) // the allocator's own start-up is not a block's cost
	runtime.GC()
	p.before = measure.Resident(b)
	return p
}

func (p *population) next() uint64 { return measure.From(p.random.Next(), p.least, p.span) }

// live allocates the blocks and keeps all of them.
func (p *population) live(b *testing.B) {
	measure.Once(b, len(p.blocks), func() {
		for i := range p.blocks {
			b := must(alloc(int(p.next())))
			touch(b)
			p.blocks[i] = b
		}
	})
	p.random = measure.Seed(0) // the same sizes again, for the bytes beyond the first
	for _, b := range p.blocks {
		size := int(p.next())
		fill(bytes(b, size))
		p.requested += uint64(size)
	}
}

func (p *population) report(b *testing.B) (grown uint64) {
	grown = measure.Grown(b, p.before)
	runtime.KeepAlive(p.blocks)
	b.ReportMetric(float64(grown)/float64(p.requested), "resident/requested")
	measure.Sum(b, p.requested)
	return grown
}

// fill writes every byte of b. Not with zeros: a zero page may be anyone's.
func fill(b []byte) {
	for len(b) > 0 {
		b = b[copy(b, ones[:]):]
	}
}

var ones = func() (o [4096]byte) {
	for i := range o {
		o[i] = 1
	}
	return o
}()
