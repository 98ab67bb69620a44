// Growth: watermarks over committed bytes, of each heap and of all heaps together.
//
// A small heap that grows beyond its watermark takes memory that it may not need: free blocks in
// caches and free runs of other lengths may suffice. So the layer above gives memory back, and
// raises the watermark by a step. Ticks lower it again, by half in eight decays. Between two ticks
// the watermark only rises, so a program whose bytes rise and fall soon passes it no more.
//
// The watermark of all heaps is the budget's. A block's fresh pages take no memory before its owner
// touches them. So the hook runs before Alloc returns the block, and can make Alloc wait until
// there is memory for it.

package pages

import (
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/vm"
)

const (
	// The range of committed bytes in which a heap has a watermark. In a larger heap, what caches
	// hold is a small part, and ticks suffice.
	leastWatermark = 1 << 20
	mostWatermark  = 64 << 20

	// A step is this part of the committed bytes, but at least leastStep. If more than a step was
	// given back, the heap may do with less, and the next step is a short one.
	StepShare  = 32
	leastStep  = 256 << 10
	shortShare = 4 // of a step
)

// Passed reports whether p has grown beyond its watermark. A heap that keeps its memory until Trim,
// or that returns it at once, never does.
func (p *Heap) Passed() bool { return p.passed.Load() }

// noteWatermark updates passed. mu is held.
func (p *Heap) noteWatermark() {
	keeps := p.decay < 0 || p.WholePages
	p.passed.Store(p.committed > p.watermark && p.committed <= mostWatermark && !keeps)
}

// RaiseWatermark sets the watermark a step above before, the bytes that were committed before
// memory was given back.
func (p *Heap) RaiseWatermark(before uintptr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	step := max(leastStep, before/StepShare)
	if before > p.committed+step {
		step /= shortShare
	}
	p.watermark = before + step
	p.noteWatermark()
}

// lowerWatermark is the part of a tick. mu is held.
func (p *Heap) lowerWatermark() {
	p.watermark = max(leastWatermark, p.committed, p.watermark-p.watermark/StepShare)
	p.noteWatermark()
}

var growth struct {
	watermark atomic.Int64 // on committedByAll; 0 is none
	passed    atomic.Pointer[func()]
}

// OnGrowth sets the hook. Each goroutine that takes pages while OffHeap is above the watermark
// calls it, without a lock of the heap. f must set another watermark before it allocates.
func OnGrowth(f func()) { growth.passed.Store(&f) }

// SetWatermark sets the bytes of OffHeap above which the hook is called; 0 is never.
func SetWatermark(bytes int64) {
	if !vm.GoBacked {
		growth.watermark.Store(bytes)
	}
}

// NoteGrowth is called after a heap has taken pages. No lock of the heap is held.
func NoteGrowth() {
	if w := growth.watermark.Load(); w != 0 && committedByAll.Load() > w {
		(*growth.passed.Load())()
	}
}
