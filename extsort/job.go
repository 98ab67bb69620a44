// Job: one sort, from its inputs to sorted runs.
//
// A worker fills its region while the others sort theirs and write them as runs.
// No run is written before every region has been filled once: if the input ends
// before, the runs stay in memory.

package extsort

import (
	"cmp"
	"context"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
)

type job struct {
	l        layout
	o        Options
	mem      []byte
	plan     *plan
	progress *meter
	stop     atomic.Bool // sorting is to end: nobody needs it

	mu      sync.Mutex
	runs    []*run
	files   []*file
	longest int // bytes of the longest stored record
}

// withJob calls f with a job, and passes its panic on.
func withJob(call string, o *Options, f func(j *job) error) error {
	j, err := newJob(call, o)
	if err != nil {
		return err
	}
	defer j.close()
	return passPanic(f(j))
}

// newJob checks the options and takes the memory.
func newJob(call string, o *Options) (*job, error) {
	j := &job{}
	if o != nil {
		j.o = *o
	}
	arg.AtLeast(call, "Memory", j.o.Memory, 0)
	arg.AtLeast(call, "Parallel", j.o.Parallel, 0)
	if j.o.ThenRecord && j.o.Key == nil {
		j.o.ThenRecord = false
	}
	j.o.Memory = cmp.Or(j.o.Memory, defaultMemory)
	if j.o.Memory < MinMemory {
		arg.Panicf(call, "Memory %d, want 0 or at least %d", j.o.Memory, MinMemory)
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
	mem, err := j.o.Parent.Alloc(j.o.Memory&^(blockAlign-1), blockAlign)
	if err != nil {
		return nil, err
	}
	_ = freehold.Advise(mem, freehold.AdviceHugePages)
	j.mem = mem
	j.plan = newPlan(mem, j.o.Parallel, j.l.kind == kindKeyed)
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
	indexes := p.indexes(0, p.workers)
	j.progress.begin(Reading, inputBytes(inputs))
	defer context.AfterFunc(ctx, func() { j.stop.Store(true) })()
	err := all(ctx, p.workers, func(ctx context.Context, i int) error {
		defer context.AfterFunc(ctx, func() { j.stop.Store(true) })()
		w := worker{job: j, src: src, round: r, region: p.regions[i], id: i, x: indexes[i]}
		defer w.close() // if the user's functions panic
		return firstError(w.work(ctx), w.close())
	})
	slices.SortFunc(j.runs, byInput)
	return err
}

type worker struct {
	*job
	src    *source
	round  *round
	region *region
	id     int
	x      *index
	out    *runWriter // nil before the first run is written
}

func (w *worker) work(ctx context.Context) error {
	for first := true; ; first = false {
		pieces, more, err := w.fill(ctx, first)
		if err != nil || w.region.n == 0 {
			return err
		}
		sorted, err := w.region.sort(ctx, &w.l, pieces, &w.stop)
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.round.over:
		}
		if w.round.inMemory {
			w.keep(sorted)
			return nil
		}
		if err := w.write(ctx, sorted[0]); err != nil || !more {
			return err
		}
	}
}

// fill fills the region. It returns in how many pieces to sort it, and whether
// there may be more to read.
func (w *worker) fill(ctx context.Context, first bool) (pieces int, more bool, err error) {
	s := w.src
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return 0, false, context.Cause(ctx)
	}
	if s.done {
		w.region.clear()
		return 0, false, nil
	}
	if err := s.fill(ctx, w.region); err != nil {
		return 0, false, err
	}
	pieces = 1
	if first {
		w.round.left--
		if s.done {
			w.round.inMemory = true
			pieces = w.plan.workers
		}
		if s.done || w.round.left == 0 {
			close(w.round.over)
		}
	}
	return pieces, !s.done, nil
}

// keep adds the sorted pieces of the region as runs in memory.
func (w *worker) keep(sorted [][]entry) {
	r := w.region
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, e := range sorted {
		w.runs = append(w.runs, &run{seq: r.seq, piece: i, bytes: int64(r.text / len(sorted)), text: r.mem[:r.text], entries: e})
	}
}

// write writes the sorted region as a run in a file.
func (w *worker) write(ctx context.Context, sorted []entry) error {
	if w.out == nil {
		f, err := w.createFile(w.id)
		if err != nil {
			return err
		}
		write := func(b []byte, at int64) error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return f.writeAt(b, at)
		}
		w.out = &runWriter{l: &w.l, file: f, w: newWriter(w.plan.writer(w.id), 0, write), x: w.x}
	}
	r, err := w.out.writeEntries(w.region.seq, w.region.mem[:w.region.text], sorted)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs = append(w.runs, r)
	return nil
}

// close ends the worker. It may be called again.
func (w *worker) close() error {
	w.mu.Lock()
	w.longest = max(w.longest, w.region.longest)
	w.mu.Unlock()
	if w.out == nil {
		return nil
	}
	return w.out.w.close()
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
