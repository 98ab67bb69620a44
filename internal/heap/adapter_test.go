package heap

import (
	"fmt"
	"testing"
)

// Exported for the tests that need alloctest, which imports this package.

// Adapter is a Heap with the methods of freehold.Allocator.
type Adapter struct{ *Heap }

func (a Adapter) Alloc(size, align int) ([]byte, error)  { return a.Heap.Alloc(size, align, false) }
func (a Adapter) Zeroed(size, align int) ([]byte, error) { return a.Heap.Alloc(size, align, true) }

var NewHeap = newHeap

var (
	Check  = (*Heap).check
	Fill   = fill
	AllSet = allSet
)

// Tick is what the timer does.
func (h *Heap) Tick() { h.tick() }

// PlainAdapter allocates and frees without assembly.
type PlainAdapter struct{ Adapter }

func (a PlainAdapter) Alloc(size, align int) ([]byte, error)  { return a.Heap.alloc(size, align, false) }
func (a PlainAdapter) Zeroed(size, align int) ([]byte, error) { return a.Heap.alloc(size, align, true) }
func (a PlainAdapter) Free(b []byte)                          { a.Heap.free(b) }

var SampleAt = sampleAt

// Checked reports whether blocks are checked from the start of the program on.
func Checked() bool { return quarantineBytes > 0 }

var GuardAt = guardAt

// EachRate runs a test without sampling, with some blocks sampled and with all.
func EachRate(t *testing.T, test func(t *testing.T)) {
	rates := []int{0, 1, 300}
	if testing.Short() {
		rates = rates[:2]
	}
	for _, rate := range rates {
		t.Run(fmt.Sprint("rate=", rate), func(t *testing.T) {
			sampleAt(t, rate)
			test(t)
		})
	}
}
