// Work: the load beside live data.
//
//	worker   | allocate an array | fill it with random numbers | allocate ...
//	worker   | allocate an array | fill it with random numbers | allocate ...
//	loop     | turn |      | turn |      | turn |      | turn |
//	         0             1 ms          2 ms          3 ms
//
// A turn of the loop models a small request: it allocates objects. It is due
// at a fixed time, however long those before it took, and is late by all that has
// kept it from a processor.

package load

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

const (
	TurnEvery = time.Millisecond
	TurnBytes = 64 << 10
)

// A turnObject is an object that a turn allocates.
type turnObject struct {
	next *turnObject
	_    [turnObjectBytes - unsafe.Sizeof(uintptr(0))]byte
}

const turnObjectBytes = 64

// work is the load of one run, and its figures.
type work struct {
	arrayBytes int64
	arrays     atomic.Int64 // filled by the workers
	sum        atomic.Uint64
	late       []time.Duration // of each turn: from when it was due to its end
}

// run runs workers and the loop for the time d and then as long as busy says, up to
// three times d in all, or until ctx is done.
func (w *work) run(ctx context.Context, workers int, d time.Duration, busy func() bool) {
	w.late = make([]time.Duration, 0, d/TurnEvery+1)
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() { w.fill(ctx, uint64(i)<<40) })
	}
	w.loop(ctx, time.Now(), d, busy)
	stop()
	all.Wait()
}

// fill fills arrays until ctx is done.
func (w *work) fill(ctx context.Context, number uint64) {
	for ctx.Err() == nil {
		array := make([]uint64, w.arrayBytes/8)
		for i := range array {
			array[i] = number * 0x9E3779B97F4A7C15
			number++
		}
		w.sum.Add(array[len(array)/2])
		w.arrays.Add(1)
	}
}

// loop takes turns, as run says.
func (w *work) loop(ctx context.Context, start time.Time, d time.Duration, busy func() bool) {
	var due time.Duration
	for ; ctx.Err() == nil && (due < d || due < 3*d && busy()); due += TurnEvery {
		time.Sleep(time.Until(start.Add(due)))
		var last *turnObject
		for range TurnBytes / turnObjectBytes {
			last = &turnObject{next: last}
		}
		if last.next == nil {
			panic("a turn allocated nothing")
		}
		w.late = append(w.late, time.Since(start)-due)
	}
	if ctx.Err() == nil {
		time.Sleep(time.Until(start.Add(due)))
	}
}

// lateness returns the quantile q of how late turns were, and the most, in
// milliseconds.
func (w *work) lateness(q float64) (quantile, worst float64) {
	if len(w.late) == 0 {
		return 0, 0
	}
	slices.Sort(w.late)
	ms := func(i int) float64 { return w.late[i].Seconds() * 1000 }
	return ms(int(float64(len(w.late)-1) * q)), ms(len(w.late) - 1)
}
