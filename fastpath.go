// Fast path: which code serves small blocks, and why.

package freehold

import (
	"errors"

	"github.com/freehold-go/freehold/internal/heap"
)

// FastPath returns nil if small blocks are allocated and freed without a pin or a lock, as
// with the tested versions of Go on the tested systems. Otherwise it takes up to twice as
// long, and the error says why:
//
//	freehold: small blocks without the fast path: go1.28 is none of the tested versions, go1.25, go1.26, go1.27
//
// The result is the same for all heaps and never changes. Both ways have the same
// guarantees, so the error is for a log or for a benchmark that must not run on the slow
// way.
func FastPath() error {
	if o := heap.Obstacle(); o != "" {
		return errors.New("freehold: small blocks without the fast path: " + o)
	}
	return nil
}
