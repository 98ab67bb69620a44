// The load in a box: off-heap data beside a Go heap that churns.
//
//	            |-- load --|-- hold --|- drop half -|- hold -|  as often as rounds
//	off-heap          ____________________
//	        _________/                    \_______________
//	Go heap  goroutines replace nodes of a table all the time
//
// It tells its figures each boxSampleTime, so that one that is killed has told all up to then.

package load

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/lab/process"
	"github.com/freehold-go/freehold/lab/run"
)

const boxSampleTime = 10 * time.Millisecond

// A BoxSample has the figures that the load reports while it runs.
type BoxSample struct {
	Seconds   float64 `json:"s"`
	Go        int64   `json:"go"`    // that Go's runtime has from the system
	OffHeap   int64   `json:"off"`   // that the heaps have
	Limit     int64   `json:"limit"` // Go's; 0 is none
	Cycles    int64   `json:"cycles"`
	Collector float64 `json:"gc"`    // share of all processors' time until the last collection's end, -1 before the first
	Nodes     int64   `json:"nodes"` // allocated so far
	Done      float64 `json:"done"`  // of the load
	Failed    bool    `json:"failed"`
}

// A boxNode is an object of the live data on the Go heap.
type boxNode struct {
	next *boxNode
	data [56]byte
}

const boxNodeBytes = 64 + 8 // with its place in the table

// boxWork is a load that runs.
type boxWork struct {
	Boxes
	heap  *freehold.Heap
	share share
	began time.Time

	nodes atomic.Int64
	turns atomic.Int64 // rises and falls that are done
}

// Load is the process in the box. The last sample is its result, and has Done 1.
func (s Boxes) Load(ctx context.Context, r BoxRun, tell run.Writer) (last BoxSample, err error) {
	run.DieFirst()
	if r.Mode == BoxBudget {
		b, err := budget.Start(nil)
		if err != nil {
			return last, err
		}
		defer b.Stop()
	}
	w := &boxWork{Boxes: s, heap: freehold.NewHeap(nil), began: time.Now()}
	defer w.heap.Close()
	w.share = share{high: int64(r.offHeap()), low: int64(r.offHeap() / 2), sizes: "boxed", rng: rand.New(rand.NewPCG(1, 2))}

	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() { w.churn(ctx, int64(s.LiveIn(r))) })
	}
	quiet := process.Every(boxSampleTime, func() { tell.Part(w.sample()) })
	err = w.offHeap()
	stop()
	all.Wait()
	quiet()
	last = w.sample()
	if errors.Is(err, freehold.ErrOutOfMemory) {
		last.Failed, err = true, nil
	}
	return last, err
}

// churn replaces nodes of a table at random, and computes with them, until ctx ends.
func (w *boxWork) churn(ctx context.Context, live int64) {
	table := make([]*boxNode, max(1, live/int64(runtime.GOMAXPROCS(0))/boxNodeBytes))
	rng := rand.New(rand.NewPCG(3, 4))
	for ctx.Err() == nil {
		const many = 1000
		for range many {
			n := &boxNode{}
			binary.LittleEndian.PutUint64(n.data[:], rng.Uint64())
			sum := fnv.New64a()
			sum.Write(n.data[:])
			table[sum.Sum64()%uint64(len(table))] = n
		}
		w.nodes.Add(many)
	}
}

// offHeap grows and shrinks off-heap memory.
func (w *boxWork) offHeap() error {
	time.Sleep(w.Hold)
	for range w.Rounds {
		if err := w.share.grow(w.heap); err != nil {
			return err
		}
		w.turns.Add(1)
		time.Sleep(w.Hold)
		if err := w.share.shrink(w.heap, w.share.low); err != nil {
			return err
		}
		w.heap.Trim()
		time.Sleep(w.Hold)
		w.turns.Add(1)
	}
	return w.share.shrink(w.heap, 0)
}

func (w *boxWork) sample() BoxSample {
	turns := w.turns.Load()
	done := float64(turns)
	if turns%2 == 0 && turns < 2*int64(w.Rounds) {
		done += float64(w.share.live.Load()) / float64(w.share.high)
	}
	c := readCollector()
	x := BoxSample{
		Seconds: time.Since(w.began).Seconds(),
		Go:      int64(metricOf("/memory/classes/total:bytes").Uint64() - metricOf("/memory/classes/heap/released:bytes").Uint64()),
		OffHeap: int64(w.heap.Stats().Committed),
		Cycles:  int64(c.cycles), Collector: -1,
		Nodes: w.nodes.Load(), Done: done / float64(2*w.Rounds),
	}
	if c.all > 0 {
		x.Collector = min(1, c.gc/c.all)
	}
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		x.Limit = limit
	}
	return x
}
