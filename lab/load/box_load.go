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
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/lab/run"
	"github.com/freehold-go/freehold/lab/wire"
)

const (
	boxSampleTime = 10 * time.Millisecond
	boxBlockBytes = 1 << 20 // the largest block
	boxPageBytes  = 4096
	// boxVariable has the directory of the control group that the load shall be in.
	boxVariable = "FREEHOLD_BOX"
)

// How a load keeps to its limit.
const (
	BoxDefault = "Go's defaults" // not at all
	BoxLimit   = "GOMEMLIMIT"    // GOGC=off and nine tenths of the limit, as container guides have it
	BoxBudget  = "budget"
)

// boxLoad is the load of one run. Sizes are bytes.
type boxLoad struct {
	Mode    string        `json:"mode"`
	OffHeap int64         `json:"offHeap"`
	Live    int64         `json:"live"` // on the Go heap
	Rounds  int           `json:"rounds"`
	Hold    time.Duration `json:"hold"`
}

// A BoxSample is what the load says of itself.
type BoxSample struct {
	Seconds   float64 `json:"s"`
	Go        int64   `json:"go"`    // that Go's runtime has from the system
	OffHeap   int64   `json:"off"`   // that the heaps have
	Limit     int64   `json:"limit"` // Go's; 0 is none
	Cycles    int64   `json:"cycles"`
	Collector float64 `json:"gc"`    // share of all processors' time so far
	Nodes     int64   `json:"nodes"` // allocated so far
	Done      float64 `json:"done"`  // of the load
	Failed    int     `json:"failed,omitempty"`
}

// RunInBox is the process in the box: its load, as JSON.
func RunInBox(ctx context.Context, text string, tell wire.Writer) error {
	if err := enterBox(); err != nil {
		return err
	}
	var l boxLoad
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return cli.Usagef("load: %w", err)
	}
	return l.run(ctx, tell)
}

// enterBox puts this process into the control group that the environment names, and begins it
// anew there, so that all of its memory counts.
func enterBox() error {
	dir := os.Getenv(boxVariable)
	if dir == "" {
		return nil
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0); err != nil {
		return fmt.Errorf("entering the box: %w", err)
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.Unsetenv(boxVariable); err != nil {
		return err
	}
	return fmt.Errorf("running this program in the box: %w", syscall.Exec(exe, os.Args, os.Environ()))
}

// boxNode is what the Go heap is full of.
type boxNode struct {
	next *boxNode
	data [56]byte
}

const boxNodeBytes = 64 + 8 // with its place in the table

// run runs the load. The last sample is its result, and has Done 1.
func (l boxLoad) run(ctx context.Context, tell wire.Writer) error {
	run.DieFirst()
	var b *budget.Budget
	if l.Mode == BoxBudget {
		var err error
		if b, err = budget.Start(nil); err != nil {
			return err
		}
		defer b.Stop()
	}
	w := &boxWork{load: l, heap: freehold.NewHeap(nil), rng: rand.New(rand.NewPCG(1, 2)), began: time.Now()}
	defer w.heap.Close()

	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() { w.churn(ctx) })
	}
	sampled := make(chan struct{})
	go func() {
		defer close(sampled)
		tick := time.NewTicker(boxSampleTime)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				tell.Part(w.sample())
			}
		}
	}()
	err := w.offHeap(ctx)
	stop()
	all.Wait()
	<-sampled
	if err != nil && !errors.Is(err, freehold.ErrOutOfMemory) {
		return err
	}
	tell.Result(w.sample(), nil)
	return nil
}

// boxWork is a load that runs.
type boxWork struct {
	load   boxLoad
	heap   *freehold.Heap
	rng    *rand.Rand
	began  time.Time
	blocks [][]byte
	held   int64 // bytes of blocks

	nodes  atomic.Int64
	failed atomic.Int64
	done   atomic.Uint64 // the bits of a fraction
}

// churn replaces nodes of a table at random, and computes with them, until ctx ends.
func (w *boxWork) churn(ctx context.Context) {
	table := make([]*boxNode, max(1, w.load.Live/int64(runtime.GOMAXPROCS(0))/boxNodeBytes))
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
func (w *boxWork) offHeap(ctx context.Context) error {
	if err := w.hold(ctx); err != nil {
		return err
	}
	for round := range w.load.Rounds {
		part := func(f float64) {
			w.done.Store(math.Float64bits((float64(round) + f) / float64(w.load.Rounds)))
		}
		for w.held < w.load.OffHeap {
			if err := errors.Join(ctx.Err(), w.grow()); err != nil {
				return err
			}
			part(float64(w.held) / float64(w.load.OffHeap) / 2)
		}
		if err := w.hold(ctx); err != nil {
			return err
		}
		w.rng.Shuffle(len(w.blocks), func(i, j int) { w.blocks[i], w.blocks[j] = w.blocks[j], w.blocks[i] })
		for w.held > w.load.OffHeap/2 {
			if err := w.shrink(); err != nil {
				return err
			}
		}
		w.heap.Trim()
		if err := w.hold(ctx); err != nil {
			return err
		}
		part(1)
	}
	for len(w.blocks) > 0 {
		if err := w.shrink(); err != nil {
			return err
		}
	}
	return nil
}

func (w *boxWork) hold(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(w.load.Hold):
		return nil
	}
}

// grow adds a block of 1 KiB to 1 MiB and touches each of its pages.
func (w *boxWork) grow() error {
	size := int(min(1<<(10+w.rng.IntN(11)), boxBlockBytes, max(w.load.OffHeap-w.held, 1024)))
	b, err := w.heap.Alloc(size, 8)
	if err != nil {
		w.failed.Add(1)
		return err
	}
	for at := 0; at < size; at += boxPageBytes {
		binary.LittleEndian.PutUint64(b[at:], uint64(size+at))
	}
	w.blocks = append(w.blocks, b)
	w.held += int64(size)
	return nil
}

// shrink frees a block whose contents are as they were written.
func (w *boxWork) shrink() error {
	last := len(w.blocks) - 1
	b := w.blocks[last]
	for at := 0; at < len(b); at += boxPageBytes {
		if got := binary.LittleEndian.Uint64(b[at:]); got != uint64(len(b)+at) {
			return fmt.Errorf("a block of %d bytes is damaged at %d", len(b), at)
		}
	}
	w.blocks = w.blocks[:last]
	w.held -= int64(len(b))
	w.heap.Free(b)
	return nil
}

func (w *boxWork) sample() BoxSample {
	s := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/total:cpu-seconds"},
	}
	metrics.Read(s)
	x := BoxSample{
		Seconds: time.Since(w.began).Seconds(),
		Go:      int64(s[0].Value.Uint64() - s[1].Value.Uint64()),
		OffHeap: int64(w.heap.Stats().Committed),
		Cycles:  int64(s[2].Value.Uint64()),
		Nodes:   w.nodes.Load(), Failed: int(w.failed.Load()), Done: math.Float64frombits(w.done.Load()),
	}
	if all := s[4].Value.Float64(); all > 0 {
		x.Collector = min(1, s[3].Value.Float64()/all)
	}
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		x.Limit = limit
	}
	return x
}

// boxEnvironment returns the environment of a load: this one's without what changes how
// memory is limited, and with what its mode needs.
func boxEnvironment(environ []string, mode string, limit int64, dir string) []string {
	var env []string
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "GOGC", "GOMEMLIMIT", "GODEBUG", budget.Environment, boxVariable:
		default:
			env = append(env, v)
		}
	}
	switch {
	case mode == BoxLimit:
		env = append(env, "GOGC=off", fmt.Sprintf("GOMEMLIMIT=%d", limit/10*9))
	case mode == BoxBudget && dir == "": // else the budget finds it
		env = append(env, fmt.Sprintf("%s=%d", budget.Environment, limit))
	}
	if dir != "" {
		env = append(env, boxVariable+"="+dir)
	}
	return env
}
