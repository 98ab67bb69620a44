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

	"github.com/freehold-go/freehold/internal/pin"
)

const (
	tallyBits  = 5
	cacheLines = 128 // bytes: processors fetch lines in pairs
)

// A tally is zero at first.
type tally [1 << tallyBits]struct {
	n atomic.Int64
	_ [cacheLines - unsafe.Sizeof(atomic.Int64{})]byte
}

// add adds n.
func (t *tally) add(n int64) {
	t[pin.Stripe(tallyBits)].n.Add(n)
}

// sum returns the sum of all n so far, give or take calls of add in progress.
func (t *tally) sum() int {
	var sum int64
	for i := range t {
		sum += t[i].n.Load()
	}
	return int(sum)
}
