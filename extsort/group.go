// Group: goroutines of which the first error stops the others.

package extsort

import (
	"context"
	"sync"
)

// inParallel calls f(0) to f(n-1), each on a goroutine, and waits.
func inParallel(n int, f func(i int)) {
	if n == 1 {
		f(0)
		return
	}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// all calls f(0) to f(n-1), each on a goroutine, and waits. The first error ends
// the context of all, and is returned.
func all(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var once sync.Once
	var first error
	inParallel(n, func(i int) {
		if err := f(ctx, i); err != nil {
			once.Do(func() { first = err })
			cancel(err)
		}
	})
	return first
}

// firstError returns the first error that is not nil.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
