// Job: the goroutines of a sort, how they stop, and what they report.

package buffer

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// job is a sort under way.
type job struct {
	ctx   context.Context
	guard func(f func() error) error // for each goroutine

	// stop tells all goroutines to return, with the records that they have.
	stop   atomic.Bool
	mu     sync.Mutex
	failed error // the first fault of a file
	panics []any // of goroutines

	progress    func(done, total int)
	done, total int
}

// run calls f, which the context stops. It passes the first panic of any goroutine.
func (j *job) run(f func()) error {
	defer context.AfterFunc(j.ctx, func() { j.stop.Store(true) })()
	err := j.guard(func() error { f(); return nil })
	if len(j.panics) > 0 {
		if j.panics[0] == nil {
			runtime.Goexit() // as the user's function did
		}
		panic(j.panics[0])
	}
	if err == nil {
		err = j.failed
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

// together calls f with 0 to n-1, in as many goroutines, and returns when all have
// returned. What stops one of them stops the sort.
func (j *job) together(n int, f func(i int)) {
	if n == 1 {
		f(0)
		return
	}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			returned := false
			defer func() {
				if !returned {
					j.fail(nil, recover())
				}
			}()
			if err := j.guard(func() error { f(i); return nil }); err != nil {
				j.fail(err, nil)
			}
			returned = true
		})
	}
	wg.Wait()
}

func (j *job) fail(err error, p any) {
	j.stop.Store(true)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil {
		j.panics = append(j.panics, p)
	} else if j.failed == nil {
		j.failed = err
	}
}
