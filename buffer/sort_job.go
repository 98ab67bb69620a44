// Job: the goroutines of a sort, how they stop, and their reports.

package buffer

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/keysort"
)

// A job is a sort under way.
type job struct {
	ctx   context.Context
	guard func(f func() error) error // calls f; each goroutine uses it

	// stop makes all goroutines return early, with all records in data.
	stop   atomic.Bool
	mu     sync.Mutex
	failed error // the first fault of a file, or panic of a goroutine

	progress    func(done, total int)
	done, total int
}

// run calls f. The end of the context stops it. run raises the first panic of any goroutine.
func (j *job) run(f func()) error {
	defer context.AfterFunc(j.ctx, func() { j.stop.Store(true) })()
	err := j.guard(func() error { f(); return nil })
	if failed := keysort.Pass(j.failed); err == nil {
		err = failed
	}
	if err == nil && j.stop.Load() {
		err = context.Cause(j.ctx)
	}
	return err
}

// tick reports that n bytes more were sorted or merged.
func (j *job) tick(n int) {
	if j.progress == nil || j.stop.Load() {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.done += n
	j.progress(j.done, j.total)
	if j.ctx.Err() != nil {
		j.stop.Store(true)
	}
}

// together calls f(0) to f(n-1), each in its own goroutine unless n is 1, and waits for all. A
// fault or a panic in one of them stops the sort.
func (j *job) together(n int, f func(i int)) {
	if n == 1 {
		f(0)
		return
	}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			keysort.Catch(func() error { return j.guard(func() error { f(i); return nil }) }, j.fail)
		})
	}
	wg.Wait()
}

// fail stops the sort with err. A panic replaces an error.
func (j *job) fail(err error) {
	j.stop.Store(true)
	j.mu.Lock()
	defer j.mu.Unlock()
	var p *keysort.Panic
	if j.failed == nil || errors.As(err, &p) && !errors.As(j.failed, &p) {
		j.failed = err
	}
}
