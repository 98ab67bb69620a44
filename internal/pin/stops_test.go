//go:build !race && !freehold_portable && !asan

package pin

import (
	"sync"
	"testing"

	"github.com/freehold-go/freehold/internal/test/await"
)

// Two goroutines wait during a stop that began before they came. One of them makes the next
// stop, and the other shares it.
func TestWaitersShareAStop(t *testing.T) {
	var s stops
	var made int
	var waiters sync.WaitGroup
	done := make(chan bool, 2)
	stop := func() { made++ } // s.mu is held
	s.wait(false, func() {
		made++
		waiters.Go(func() { firstWaiter(&s, stop, done) })
		waiters.Go(func() { secondWaiter(&s, stop, done) })
		if !await.Lock("firstWaiter", done) || !await.Lock("secondWaiter", done) {
			t.Error("a Wait has returned during a stop that began before it")
		}
	})
	waiters.Wait()
	if made != 2 {
		t.Errorf("%d stops, want the first and one for both waiters", made)
	}
	s.wait(true, stop)
	if made != 3 {
		t.Errorf("%d stops after another Wait, want 3", made)
	}
}

//go:noinline
func firstWaiter(s *stops, stop func(), done chan<- bool) {
	s.wait(false, stop)
	done <- true
}

//go:noinline
func secondWaiter(s *stops, stop func(), done chan<- bool) {
	s.wait(true, stop)
	done <- true
}
