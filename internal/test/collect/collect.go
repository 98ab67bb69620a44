// Package collect runs the garbage collector for tests of owners that it closes.
package collect

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
)

// All runs the collector until the cleanups of all unreachable objects have run: an object that was
// dropped before the last collection is cleaned up after it.
func All() {
	for range 2 {
		done := make(chan struct{})
		runtime.AddCleanup(new([64]byte), func(done chan struct{}) { close(done) }, done)
		for open := true; open; {
			runtime.GC()
			select {
			case <-done:
				open = false
			default:
			}
		}
	}
}

// Await runs the collector until it has closed n owners on heap, and all memory of heap is free.
func Await(t *testing.T, heap *freehold.Heap, n int) {
	t.Helper()
	for ended := time.Now().Add(time.Minute); ; runtime.GC() {
		st := heap.Stats()
		if st.Collected == uint64(n) && st.Live == 0 {
			return
		}
		if st.Collected > uint64(n) || time.Now().After(ended) {
			t.Fatalf("%d owners were collected of %d, and %d blocks live", st.Collected, n, st.Live)
		}
	}
}

// During runs the collector all the time until f returns.
func During(f func()) {
	stop := make(chan struct{})
	var collector sync.WaitGroup
	collector.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	})
	f()
	close(stop)
	collector.Wait()
}
