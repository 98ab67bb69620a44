// Worker: reads inputs to sorted runs.
//
// A worker fills its region while others sort theirs and write them as runs, again and again.
// No worker writes a run before every region has been filled once: if the input ends before
// that, the runs stay in memory.

package extsort

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/freehold-go/freehold/internal/keysort"
)

// A round is the first fill of all regions.
type round struct {
	left     int           // regions not yet filled; guarded by source.mu
	over     chan struct{} // closed when all regions are filled or the input has ended
	inMemory bool          // the regions hold all input; set before over is closed
}

// makeRuns reads all inputs. It sets j.runs to sorted runs in the order of the input.
func (j *job) makeRuns(ctx context.Context, inputs []io.Reader) error {
	p := j.plan
	src := &source{l: &j.l, rawLayout: j.l.ofInput(), inputs: inputs, chunk: p.chunk, progress: j.progress, raw: p.raw}
	r := &round{left: len(p.regions), over: make(chan struct{})}
	xs := indexes(p.marks, p.workers)
	j.progress.begin(PhaseReading, inputBytes(inputs))
	defer context.AfterFunc(ctx, func() { j.stop.Store(true) })()
	err := all(ctx, p.workers, func(ctx context.Context, i int) error {
		defer context.AfterFunc(ctx, func() { j.stop.Store(true) })()
		w := worker{j: j, src: src, round: r, region: &region{mem: p.regions[i]}, id: i, x: xs[i]}
		defer w.close() // if a function of the caller panics
		return cmp.Or(w.work(ctx), w.close())
	})
	slices.SortFunc(j.runs, byInput)
	return err
}

type worker struct {
	j      *job
	src    *source
	round  *round
	region *region
	id     int
	x      *index
	out    *runWriter // nil before the first run is written
}

// work makes runs until the input has ended.
func (w *worker) work(ctx context.Context) error {
	for first := true; ; first = false {
		pieces, more, err := w.fill(ctx, first)
		if err != nil || w.region.n == 0 {
			return err
		}
		sorted, err := w.region.sort(ctx, &w.j.l, pieces, &w.j.stop)
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

// fill fills the region. It returns how many pieces to sort it in, and whether there may be
// more input.
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
			pieces = w.j.plan.workers
		}
		if s.done || w.round.left == 0 {
			close(w.round.over)
		}
	}
	return pieces, !s.done, nil
}

// keep adds the sorted pieces of the region as runs in memory.
func (w *worker) keep(sorted [][]keysort.Entry) {
	r := w.region
	w.j.mu.Lock()
	defer w.j.mu.Unlock()
	for i, e := range sorted {
		bytes := share(r.text, i+1, len(sorted)) - share(r.text, i, len(sorted))
		w.j.runs = append(w.j.runs, &run{seq: r.seq, piece: i, bytes: bytes, text: r.mem[:r.text], entries: e})
	}
}

// write writes the sorted region as a run in a file.
func (w *worker) write(ctx context.Context, sorted []keysort.Entry) error {
	if w.out == nil {
		f, err := w.j.createFile(w.id)
		if err != nil {
			return err
		}
		write := func(b []byte, at int64) error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return f.WriteAt(b, at)
		}
		w.out = &runWriter{l: &w.j.l, file: f, w: newWriter(w.j.plan.writer(w.id), 0, write), x: w.x}
	}
	r, err := w.out.writeEntries(w.region.seq, w.region.mem[:w.region.text], sorted)
	if err != nil {
		return err
	}
	w.j.mu.Lock()
	defer w.j.mu.Unlock()
	w.j.runs = append(w.j.runs, r)
	return nil
}

// close ends the worker and its writer. Further calls return the same error.
func (w *worker) close() error {
	w.j.mu.Lock()
	w.j.longest = max(w.j.longest, w.region.longest)
	w.j.mu.Unlock()
	if w.out == nil {
		return nil
	}
	return w.out.w.close()
}

// share returns i/n of bytes.
func share(bytes, i, n int) int64 { return int64(bytes) * int64(i) / int64(n) }
