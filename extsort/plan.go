// Plan: what the memory is used for.
//
//	runs   | writers | marks | raw input | region | region | ...
//	merge  | writers | marks | buffer | buffer | ...
//
// All of it is one block of Options.Memory bytes. Only the pages that are used
// become resident.

package extsort

import (
	"fmt"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
)

// MinMemory is the least Options.Memory.
const MinMemory = 256 << 10

type plan struct {
	writers []byte // a pair of blocks for each worker and one for the output
	pair    int    // bytes of a pair
	marks   [2][]byte
	raw     []byte
	rest    []byte // regions, buffers
	workers int    // one for each region
	chunk   int    // bytes to read at a time

	maxStored int
	regions   []*region
}

// newPlan divides mem.
func newPlan(mem []byte, workers int, keyed bool) *plan {
	workers = min(workers, max(1, len(mem)/MinMemory))
	workers = max(workers, (len(mem)+maxRegionBytes-1)/maxRegionBytes)
	p := &plan{workers: workers}
	p.pair = 2 * clamp(floorPower(len(mem)/16/(workers+1)/2), blockAlign, 1<<20)
	take := func(n int) []byte {
		b := mem[:n:n]
		mem = mem[n:]
		return b
	}
	size := len(mem)
	p.writers = take(p.pair * (workers + 1))
	for i := range p.marks {
		p.marks[i] = take(size / 32 &^ (blockAlign - 1))
	}
	p.rest = mem
	if keyed {
		p.raw = take(size / 8 &^ (blockAlign - 1))
	}
	each := len(mem) / workers &^ (blockAlign - 1)
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

// indexes returns a part of the marks' memory for each of n workers.
func (p *plan) indexes(half, n int) []*index {
	each := len(p.marks[half]) / n &^ (markBytes - 1)
	xs := make([]*index, n)
	for i := range xs {
		xs[i] = &index{mem: p.marks[half][i*each:][:each], stride: min(strideOfIndex, int64(each))}
	}
	return xs
}

// A buffer is the memory of one merge: a window for each run, and the output.
type buffer struct {
	windows []byte
	each    int // bytes of a window
	out     []byte
	last    []byte // the key before, if equal ones are dropped
}

func (b *buffer) window(i int) []byte { return b.windows[i*b.each:][:b.each] }

// minWindow is the least that a merge reads at a time, but for small memory.
const minWindow = 64 << 10

// buffers divides the rest of the memory for up to n merges of so many runs at a
// time, with a longest record of maxStored bytes. It returns none if there is not
// enough for one.
func (p *plan) buffers(n, runs, maxStored int) []*buffer {
	least := max(min(minWindow, len(p.rest)/16), maxStored) + 2*blockAlign
	last := roundUp(maxStored, blockAlign)
	for ; n > 0; n-- {
		each := len(p.rest) / n &^ (blockAlign - 1)
		out := min(each/4&^(blockAlign-1), maxPartBytes)
		window := (each - out - last) / max(runs, 1) &^ (blockAlign - 1)
		if window < least {
			continue
		}
		bs := make([]*buffer, n)
		for i := range bs {
			mem := p.rest[i*each:][:each]
			bs[i] = &buffer{out: mem[:0:out], last: mem[out : out : out+last], windows: mem[out+last:], each: window}
		}
		return bs
	}
	return nil
}

// fan returns how many runs each of n merges can take at a time, 0 if less than
// two.
func (p *plan) fan(n, maxStored int) int {
	runs := 0
	for len(p.buffers(n, max(2, runs+1), maxStored)) == n {
		runs = max(2, runs+1)
	}
	return runs
}

const maxPartBytes = 4 << 20

func clamp(n, least, most int) int { return max(least, min(n, most)) }

// floorPower returns the largest power of two up to n.
func floorPower(n int) int {
	p := 1
	for p*2 <= n {
		p *= 2
	}
	return p
}

// A RecordError says that a record is too long for the memory of a sort.
type RecordError struct {
	Source int   // of the record: the index of an input
	Offset int64 // of the record in that input, in bytes
	Max    int   // the most bytes that a record may have, with its key
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("freehold: extsort: the record at byte %d of input %d is longer than the %s that this much memory allows", e.Offset, e.Source, arg.Bytes(e.Max))
}

const _ = -(unsafe.Sizeof(entry{}) ^ entryBytes)
const _ = -(unsafe.Sizeof(mark{}) ^ markBytes)
