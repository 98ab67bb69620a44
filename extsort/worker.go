// Worker: fills a region, sorts it, and writes it as a run, again and again.

package extsort

import (
	"context"

	"github.com/freehold-go/freehold/internal/keysort"
)

type worker struct {
	j      *job
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
		w.j.runs = append(w.j.runs, &run{seq: r.seq, piece: i, bytes: share(r.text, i+1, len(sorted)) - share(r.text, i, len(sorted)), text: r.mem[:r.text], entries: e})
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
			return f.writeAt(b, at)
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

// close ends the worker. It may be called again.
func (w *worker) close() error {
	w.j.mu.Lock()
	w.j.longest = max(w.j.longest, w.region.longest)
	w.j.mu.Unlock()
	if w.out == nil {
		return nil
	}
	return w.out.w.close()
}

// share returns i/n of so many bytes.
func share(bytes, i, n int) int64 { return int64(bytes) * int64(i) / int64(n) }
