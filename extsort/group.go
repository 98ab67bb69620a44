// Group: goroutines of which the first error stops the others.
//
// A panic of the user's functions is an error on its way to the caller, where it
// is a panic again: in Key and Progress, in a Read of a source, in a Write of dst.

package extsort

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
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
		wg.Go(func() { catch(func() error { return f(ctx, i) }, failed) })
	}
	wg.Wait()
	return first
}

// A panicError is a panic of a goroutine.
type panicError struct {
	value any // nil for runtime.Goexit
}

func (p *panicError) Error() string { return fmt.Sprint("panic: ", p.value) }

// catch calls f, and failed with its error or its panic. It does not return if f
// calls runtime.Goexit.
func catch(f func() error, failed func(error)) {
	returned := false
	defer func() {
		if !returned {
			failed(&panicError{recover()})
		}
	}()
	err := f()
	returned = true
	if err != nil {
		failed(err)
	}
}

// passPanic returns err unless it is a panic, which it passes to its caller.
func passPanic(err error) error {
	var p *panicError
	if !errors.As(err, &p) {
		return err
	}
	if p.value == nil {
		runtime.Goexit()
	}
	panic(p.value)
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
