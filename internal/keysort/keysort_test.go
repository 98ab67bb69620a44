package keysort

import (
	"errors"
	"runtime"
	"sync"
	"testing"
)

// What a function ends with in a goroutine of its own, it ends with at the caller.
func TestWhatAGoroutineEndsWithPasses(t *testing.T) {
	wrong := errors.New("wrong")
	for want, f := range map[any]func() error{
		"returned": func() error { return nil },
		wrong:      func() error { return wrong },
		"panicked": func() error { panic("panicked") },
		"ended":    func() error { runtime.Goexit(); return nil },
	} {
		var failed error
		got := any("ended")
		var wg sync.WaitGroup
		wg.Go(func() { Catch(f, func(err error) { failed = err }) })
		wg.Wait()
		wg.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					got = p
				}
			}()
			if err := Pass(failed); err != nil {
				got = err
			} else {
				got = "returned"
			}
		})
		wg.Wait()
		if got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}
