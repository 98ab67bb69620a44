// Growth: a watermark over the committed bytes of all heaps.
//
// A block's fresh pages take no memory before its owner touches them. So the hook runs before
// Alloc returns the block, and can make Alloc wait until there is memory for it.

package pages

import (
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/vm"
)

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
