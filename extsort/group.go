// Group: goroutines of which the first error stops the others.
//
// A panic of the user's functions is an error on its way to the caller, where it
// is a panic again: in Key and Progress, in a Read of a source, in a Write of dst.

package extsort

import (
	"context"
	"sync"

	"github.com/freehold-go/freehold/internal/keysort"
)

// all calls f(0) to f(n-1), each on a goroutine unless n is 1, and waits. The first
// error ends the context of all, and is returned.
func all(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	if n == 1 {
		return f(ctx, 0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var once sync.Once
	var first error
	failed := func(err error) {
		once.Do(func() { first = err })
		cancel(err)
	}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { keysort.Catch(func() error { return f(ctx, i) }, failed) })
	}
	wg.Wait()
	return first
}
