package process

import (
	"sync"
	"time"
)

// Every calls f once each d, in a goroutine, until stop is called. Stop waits for the last call.
func Every(d time.Duration, f func()) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(d)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				f()
			}
		}
	}()
	return sync.OnceFunc(func() { close(quit); <-done })
}
