// Plan: what the memory is used for.
//
//	runs   | writers | marks | raw input | region | region | ...
//	merge  | writers | marks | buffer | buffer | ...
//
// All of it is one block of Options.MemoryBytes. Only the pages that are used
// become resident.

package extsort

import (
	"math/bits"
	"unsafe"
)

// MinMemoryBytes is the least Options.MemoryBytes.
const MinMemoryBytes = 256 << 10

type plan struct {
	writers []byte // a pair of blocks for each worker and one for the output
	pair    int    // bytes of a pair
	marks   []byte // of the latest runs: merging runs to fewer needs no marks of theirs
	raw     []byte
	rest    []byte // regions, buffers
	workers int    // one for each region
	chunk   int    // bytes to read at a time

	maxStored int
	regions   []*region
}

// newPlan divides mem.
func newPlan(mem []byte, workers int, keyed bool) *plan {
	workers = min(workers, max(1, len(mem)/MinMemoryBytes))
	p := &plan{workers: workers}
	block := len(mem) / 16 / (workers + 1) / 2
	p.pair = 2 * max(blockAlign, min(1<<(bits.Len(uint(block))-1), 1<<20))
	take := func(n int) []byte {
		b := mem[:n:n]
		mem = mem[n:]
		return b
	}
	size := len(mem)
	p.writers = take(p.pair * (workers + 1))
	p.marks = take(size / 32 &^ (blockAlign - 1))
	p.rest = mem
	if keyed {
		p.raw = take(size / 8 &^ (blockAlign - 1))
	}
	each := min(len(mem)/workers, maxRegionBytes) &^ (blockAlign - 1)
	for range workers {
		p.regions = append(p.regions, &region{mem: take(each)})
	}
	p.maxStored = min(each/4, size/8&^(blockAlign-1))
	p.chunk = min(1<<20, each/8)
	return p
}

// writer returns the memory of writer i.
func (p *plan) writer(i int) []byte { return p.writers[i*p.pair:][:p.pair:p.pair] }

// output returns the memory of the output's writer.
func (p *plan) output() []byte { return p.writer(p.workers) }

// streams returns how many inputs to read at a time: each may be an open file and needs
// memory for its longest record.
func (p *plan) streams() int {
	memory := len(p.rest)/min(minWindow, len(p.rest)/16) - 1
	return max(2, min(memory, 255, freeDescriptors()-spareDescriptors))
}

// fileWorkers returns how many workers may have temporary files: one with the runs to
// merge, and at the same time one for what they are merged to.
func fileWorkers() int { return max(1, (freeDescriptors()-spareDescriptors)/2) }

// spareDescriptors are for an input, the output, a temporary file, and what the process
// opens meanwhile.
const spareDescriptors = 8

// indexes returns a part of the marks' memory for each of n workers.
func (p *plan) indexes(n int) []*index {
	each := len(p.marks) / n &^ (markBytes - 1)
	xs := make([]*index, n)
	for i := range xs {
		xs[i] = &index{mem: p.marks[i*each:][:each], stride: min(strideOfIndex, int64(each))}
	}
	return xs
}

const _ = -(unsafe.Sizeof(mark{}) ^ markBytes)
