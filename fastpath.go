// Fast path: which code serves small blocks, and why.

package freehold

import (
	"errors"

	"github.com/freehold-go/freehold/internal/heap"
)

// FastPath returns nil if assembly allocates and frees small blocks. Otherwise Go code
// does, which takes about twice as long, and the error says why:
//
//	freehold: small blocks without assembly: go1.28 is none of the tested versions, go1.26, go1.27
//
// The result is the same for all heaps and never changes. Both ways have the same
// guarantees, so the error is for a log or for a benchmark that must not run on the slow
// way.
func FastPath() error {
	if o := heap.Obstacle(); o != "" {
		return errors.New("freehold: small blocks without assembly: " + o)
	}
	return nil
}
