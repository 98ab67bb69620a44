// Words: live blocks searched for pointers into the Go heap.
//
// The heap's walk keeps the memory of each part while it is read. A word that another goroutine
// writes meanwhile is read old or new. The race detector does not look at these reads.

package watch

import (
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/asan"
	"github.com/freehold-go/freehold/internal/mode"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/vm"
)

// GoPointer is a word of a live block that is an address in the Go heap.
type GoPointer struct {
	Block  uintptr   // address
	Size   int       // of the block
	Offset int       // of the word
	Word   uintptr   // its value
	Stack  []uintptr // of the allocation, as in Usage; nil unless the block has a record
}

// GoPointers returns the aligned words of live blocks that are addresses in the Go heap, in the
// order of their addresses. walk visits the blocks. The error says that the build cannot tell.
func GoPointers(walk func(visit func(Part))) (all []GoPointer, err error) {
	if err := canTellGoPointers(); err != nil {
		return nil, err
	}
	walk(func(p Part) {
		// Where every block is watched, one that is not is about to be, or is being resized.
		if p.Watched || Zone() == 0 {
			all = p.appendGoPointers(all)
		}
	})
	return all, nil
}

// IsGoPointer reports whether word is an address in the Go heap or in a goroutine's stack. It
// is false where the build cannot tell.
func IsGoPointer(word uintptr) bool {
	return isGoPointer(word) && pages.Addresses.RegionOf(word) == nil
}

// lenders is the number of open allocators whose blocks are Go memory.
var lenders atomic.Int64

// LendGoMemory adds n allocators whose blocks are Go memory. A negative n takes -n of them back.
func LendGoMemory(n int) { lenders.Add(int64(n)) }

// LendsGoMemory reports whether there is such an allocator. Then a Go pointer may point into a
// block.
func LendsGoMemory() bool { return lenders.Load() > 0 }

// ChecksReferences reports whether references are checked: FREEHOLD_DEBUG has a mode that looks for
// mistakes, or the build has -asan.
func ChecksReferences() bool {
	_, quarantine := mode.Quarantine()
	_, _, guard := mode.OneIn("guard")
	return quarantine || guard || mode.On("leak") || asan.Enabled
}

//go:norace
func (p Part) appendGoPointers(all []GoPointer) []GoPointer {
	for at := p.From; at+pages.WordBytes <= p.To; at += pages.WordBytes {
		if word := *(*uintptr)(vm.Pointer(p.Block + at)); IsGoPointer(word) {
			pcs, _ := table.stacks.Stack(p.Stack)
			all = append(all, GoPointer{p.Block, int(p.Size), int(at), word, pcs})
		}
	}
	return all
}
