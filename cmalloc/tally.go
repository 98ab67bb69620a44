// Tally: a sum that goroutines add to without getting in each other's way.
//
// One word that two processors write costs each of them 10 ns a time. So there
// are several, each in cache lines of its own, and a goroutine uses the one that
// the address of its stack points at:
//
//	goroutine --stack--> part 3   | part 0 | part 1 | part 2 | part 3 | ...
//
// Which part a goroutine uses does not matter for the sum.

package cmalloc

import (
	"sync/atomic"
	"unsafe"
)

const (
	tallyBits   = 5
	cacheLines  = 128 // bytes: processors fetch lines in pairs
	stackShift  = 11  // the smallest stack is 2 KiB
	goldenRatio = 2654435769
)

// A tally is zero at first.
type tally [1 << tallyBits]struct {
	n atomic.Int64
	_ [cacheLines - unsafe.Sizeof(atomic.Int64{})]byte
}

// add adds n.
func (t *tally) add(n int64) {
	var local byte
	hash := uint32(uintptr(unsafe.Pointer(&local))>>stackShift) * goldenRatio
	t[hash>>(32-tallyBits)].n.Add(n)
}

// sum returns the sum of all n so far, give or take calls of add in progress.
func (t *tally) sum() int {
	var sum int64
	for i := range t {
		sum += t[i].n.Load()
	}
	return int(sum)
}
