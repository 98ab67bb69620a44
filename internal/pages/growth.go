// Growth: who takes memory says so when all heaps have committed much more.
//
// A block's fresh pages take no memory before its owner touches them. So the one who watches
// is told before Alloc returns the block, and has Alloc wait until there is memory for it.

package pages

import (
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/vm"
)

var growth struct {
	watermark atomic.Int64 // of committedByAll; 0 is none
	passed    atomic.Pointer[func()]
}

// OnGrowth has f called when OffHeap is above the watermark, by each goroutine that takes
// pages then, without a lock of the heap. f sets another watermark before it allocates. There is
// one f.
func OnGrowth(f func()) { growth.passed.Store(&f) }

// SetWatermark sets the bytes of OffHeap above which OnGrowth's function is called; 0 is never.
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
