// Tally: a striped counter.
//
// A word that two processors write moves between their caches at each write. So there are several
// parts, each in cache lines of its own. A goroutine uses the part that the address of its stack
// selects; any part is correct:
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

// A tally is a counter. The zero value is ready for use.
type tally [1 << tallyBits]struct {
	n atomic.Int64
	_ [cacheLines - unsafe.Sizeof(atomic.Int64{})]byte
}

// add adds n.
func (t *tally) add(n int64) {
	t[pin.Stripe(tallyBits)].n.Add(n)
}

// sum returns the sum of all n so far. It may miss calls of add in progress.
func (t *tally) sum() int {
	var sum int64
	for i := range t {
		sum += t[i].n.Load()
	}
	return int(sum)
}
