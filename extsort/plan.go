// Plan: how a sort divides its memory, one block of Options.MemoryBytes.
//
//	runs   | writers | marks | raw input | region | region | ...
//	merge  | writers | marks | buffer | buffer | ...
//
// Pages that are never touched do not become resident.

package extsort

import (
	"math/bits"

	"github.com/freehold-go/freehold/internal/file/spill"
)

// blockAlign divides the addresses, offsets and lengths of direct reads and writes.
const blockAlign = spill.Align

// MinMemoryBytes is the least Options.MemoryBytes.
const MinMemoryBytes = 256 << 10

type plan struct {
	writers []byte   // a pair of blocks for each worker, and one for the output
	pair    int      // bytes of a pair
	marks   []byte   // of the runs being written; merges to fewer runs read no old marks
	raw     []byte   // raw input, if records are stored with keys
	rest    []byte   // all memory behind the marks
	regions [][]byte // one for each worker
	workers int
	chunk   int // bytes to read at a time

	maxStored int // bytes of the longest stored record
}

// maxRegionBytes lets the 32 bits of an entry hold an offset.
const maxRegionBytes = min(1<<32-1<<20, 1<<(bits.UintSize-2))

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
		p.regions = append(p.regions, take(each))
	}
	p.maxStored = min(each/4, size/8&^(blockAlign-1))
	p.chunk = min(1<<20, each/8)
	return p
}

// writer returns the memory of worker i's writer.
func (p *plan) writer(i int) []byte { return p.writers[i*p.pair:][:p.pair:p.pair] }

// output returns the memory of the writer of the output.
func (p *plan) output() []byte { return p.writer(p.workers) }

// streams returns how many sorted inputs to merge at a time. Each may be an open file and
// needs memory for its longest record.
func (p *plan) streams() int {
	memory := len(p.rest)/p.leastWindow() - 1
	return max(2, min(memory, 255, spill.FreeDescriptors()-spareDescriptors))
}

// fileWorkers returns how many workers may have temporary files. A worker that merges runs
// has two: it reads one and writes the other.
func fileWorkers() int { return max(1, (spill.FreeDescriptors()-spareDescriptors)/2) }

// spareDescriptors are for an input, the output, a temporary file, and other files of the
// process.
const spareDescriptors = 8

// minWindow is the fewest bytes that a merge reads at a time, unless memory is small.
const minWindow = 64 << 10

// leastWindow returns how many bytes a merge reads at a time at least.
func (p *plan) leastWindow() int { return min(minWindow, len(p.rest)/16) }
