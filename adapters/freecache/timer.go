// Timers: the second that decides whether an entry has expired.

package freecache

import (
	"sync/atomic"
	"time"
)

// A Timer tells the time in seconds. Any number of goroutines may call it at the same time.
type Timer interface{ Now() uint32 }

// A StoppableTimer has a goroutine until it is stopped.
type StoppableTimer interface {
	Timer
	// Stop ends the goroutine. Now returns the same second from then on. Call it once.
	Stop()
}

// defaultTimer is the time of the system.
type defaultTimer struct{}

func (defaultTimer) Now() uint32 { return uint32(time.Now().Unix()) }

// A cachedTimer reads the time of the system once a second.
type cachedTimer struct {
	now    atomic.Uint32
	ticker *time.Ticker
	done   chan struct{}
}

// NewCachedTimer returns a timer that is up to a second late. Here it is no faster than the default,
// the system's time.
func NewCachedTimer() StoppableTimer {
	t := &cachedTimer{ticker: time.NewTicker(time.Second), done: make(chan struct{})}
	t.now.Store(defaultTimer{}.Now())
	go t.update()
	return t
}

func (t *cachedTimer) update() {
	for {
		select {
		case <-t.done:
			return
		case <-t.ticker.C:
			t.now.Store(defaultTimer{}.Now())
		}
	}
}

func (t *cachedTimer) Now() uint32 { return t.now.Load() }

func (t *cachedTimer) Stop() {
	t.ticker.Stop()
	close(t.done)
}
