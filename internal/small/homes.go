// Homes: the depots and partial spans of each processor, or of several that share them.

package small

import (
	"iter"
	"math/bits"
	"runtime"
	"sync/atomic"
)

// numHomes returns the number of homes of a new heap. slotNumber returns a number for a slot: homeOf
// reduces it to a home. Both are variables for tests.
var (
	numHomes   = func() int { return homesFor(runtime.GOMAXPROCS(0)) }
	slotNumber = func(slot int) int { return slot }
)

// SetHomes sets the number of homes of new heaps and the home of each slot. Calling undo restores
// both. For tests.
func SetHomes(n int, of func(slot int) int) (undo func()) {
	homes, number := numHomes, slotNumber
	numHomes, slotNumber = func() int { return n }, of
	return func() { numHomes, slotNumber = homes, number }
}

const maxHomes = 64

// homesFor returns the number of homes, a power of two.
func homesFor(processors int) int {
	return 1 << bits.Len(uint(min(processors, maxHomes)-1))
}

// home has the depots and the partial spans of a home, by class. With words of 64 bits each depot
// fills a cache line.
type home struct {
	depots  [NumClasses]depot
	partial [NumClasses]spanList
}

// homes has the homes of a heap. A home has 7 KB, so each is nil until a processor of it needs a
// depot. Once added it stays.
type homes []atomic.Pointer[home]

// all yields the homes that were added, with their numbers.
func (all homes) all(yield func(i int, x *home) bool) {
	for i := range all {
		if x := all[i].Load(); x != nil && !yield(i, x) {
			return
		}
	}
}

// others yields all but home i. Each home has an order of its own.
func (all homes) others(i int) iter.Seq[*home] {
	return func(yield func(x *home) bool) {
		for j := 1; j < len(all); j++ {
			if x := all[i^j].Load(); x != nil && !yield(x) {
				return
			}
		}
	}
}

// homeOf returns the home of a slot.
func (h *Heap) homeOf(slot int) int { return slotNumber(slot) & (len(h.homes) - 1) }
