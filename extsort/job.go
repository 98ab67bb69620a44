// Job: one sort, from its inputs to sorted runs.
//
// A worker fills its region while the others sort theirs and write them as runs.
// No run is written before every region has been filled once: if the input ends
// before, the runs stay in memory.

package extsort

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/keysort"
)

type job struct {
	l        layout
	o        Options
	mem      []byte
	plan     *plan
	progress *meter
	stop     atomic.Bool // set on cancellation: sorting may stop half-done

	mu      sync.Mutex
	runs    []*run
	files   []*file
	longest int // bytes of the longest stored record
}

// withJob checks the arguments of call, calls f with a job, and passes its panic on.
func withJob(ctx context.Context, call string, o *Options, src []io.Reader, f func(j *job) error) error {
	arg.NotNil(call, "ctx", ctx)
	for i, in := range src {
		arg.NotNil(call, fmt.Sprintf("source %d", i), in)
	}
	j, err := newJob(call, o)
	if err != nil {
		return err
	}
	defer j.close()
	return keysort.Pass(f(j))
}

// newJob checks the options and takes the memory.
func newJob(call string, o *Options) (*job, error) {
	j := &job{}
	if o != nil {
		j.o = *o
	}
	arg.AtLeast(call, "MemoryBytes", j.o.MemoryBytes, 0)
	arg.AtLeast(call, "Parallel", j.o.Parallel, 0)
	if j.o.Key == nil {
		j.o.ThenRecord = false
	}
	j.o.MemoryBytes = cmp.Or(j.o.MemoryBytes, defaultMemory)
	if j.o.MemoryBytes < MinMemoryBytes {
		arg.Panicf(call, "MemoryBytes %d, want 0 or at least %d", j.o.MemoryBytes, MinMemoryBytes)
	}
	j.o.Parallel = cmp.Or(j.o.Parallel, defaultParallel())
	if len(j.o.TempDirs) == 0 {
		j.o.TempDirs = []string{os.TempDir()}
	}
	if j.o.Parent == nil {
		j.o.Parent = freehold.Pages()
	}
	j.l = newLayout(&j.o)
	j.progress = &meter{report: j.o.Progress}
	mem, err := j.o.Parent.Alloc(j.o.MemoryBytes&^(blockAlign-1), blockAlign)
	if err != nil {
		return nil, err
	}
	_ = freehold.Advise(mem, freehold.AdviceHugePages)
	j.mem = mem
	j.plan = newPlan(mem, min(j.o.Parallel, fileWorkers()), j.l.kind == kindKeyed)
	j.l.maxStored = j.plan.maxStored
	return j, nil
}

// close gives everything back.
func (j *job) close() {
	for _, f := range j.files {
		_ = f.f.Close()
	}
	j.o.Parent.Free(j.mem)
}

// spilled reports whether the runs are in files.
func (j *job) spilled() bool { return len(j.runs) > 0 && j.runs[0].file != nil }

// createFile returns temporary file i.
func (j *job) createFile(i int) (*file, error) {
	f, err := createTemp(j.o.TempDirs[i%len(j.o.TempDirs)])
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.files = append(j.files, f)
	return f, nil
}

// a round is the first fill of all regions.
type round struct {
	left     int // regions that have not been filled, guarded by source.mu
	over     chan struct{}
	inMemory bool // set before over is closed
}

// makeRuns reads all inputs. It leaves sorted runs in the order of the input.
func (j *job) makeRuns(ctx context.Context, inputs []io.Reader) error {
	p := j.plan
	src := &source{l: &j.l, rawLayout: j.l.ofInput(), inputs: inputs, chunk: p.chunk, progress: j.progress, rest: p.raw}
	r := &round{left: len(p.regions), over: make(chan struct{})}
	indexes := p.indexes(p.workers)
	j.progress.begin(PhaseReading, inputBytes(inputs))
	defer context.AfterFunc(ctx, func() { j.stop.Store(true) })()
	err := all(ctx, p.workers, func(ctx context.Context, i int) error {
		defer context.AfterFunc(ctx, func() { j.stop.Store(true) })()
		w := worker{j: j, src: src, round: r, region: p.regions[i], id: i, x: indexes[i]}
		defer w.close() // if the user's functions panic
		return cmp.Or(w.work(ctx), w.close())
	})
	slices.SortFunc(j.runs, byInput)
	return err
}

// inputBytes returns how much the inputs hold, 0 if one of them does not tell.
func inputBytes(inputs []io.Reader) (total int64) {
	for _, in := range inputs {
		f, ok := in.(interface{ Stat() (fs.FileInfo, error) })
		if !ok {
			return 0
		}
		info, err := f.Stat()
		if err != nil || !info.Mode().IsRegular() {
			return 0
		}
		total += info.Size()
	}
	return total
}
