// Merge: all runs to the output, in parts.
//
// Workers take the parts in order, merge each in memory, and pass them on in
// order. A part larger than its buffer waits for its turn when the buffer fills,
// then streams the rest.

package extsort

import (
	"context"
	"sync"

	"github.com/freehold-go/freehold/internal/keysort"
)

type merge struct {
	j         *job
	splitters []splitter
	out       *writer

	parts sync.Mutex    // guards the following
	next  int           // part
	from  []int64       // where it begins in each run
	turn  chan struct{} // closed when it may write
}

// mergeTo merges all runs to out.
func (j *job) mergeTo(ctx context.Context, out *writer) error {
	if err := j.reduce(ctx); err != nil {
		return err
	}
	var buffers []*buffer
	if j.spilled() {
		buffers = j.plan.buffers(j.plan.workers+1, len(j.runs), j.longest)
	} else {
		for i := range j.plan.workers {
			buffers = append(buffers, &buffer{out: j.plan.writer(i)[:0]})
		}
	}
	m := &merge{j: j, splitters: splitters(&j.l, j.runs, j.partBytes(buffers[0])), out: out, from: wholeRuns(j.runs).from, turn: make(chan struct{})}
	close(m.turn) // of the first part
	j.progress.begin(PhaseWriting, j.bytes())
	return all(ctx, len(buffers), func(ctx context.Context, i int) error { return m.work(ctx, buffers[i]) })
}

// partBytes returns how much to merge at a time: little enough for the output to
// be written while it is in cache, and enough to read a good piece of each run.
func (j *job) partBytes(b *buffer) int64 {
	if !j.spilled() {
		return int64(cap(b.out))
	}
	return int64(min(cap(b.out)/2, len(j.runs)*b.each*3/4))
}

func (m *merge) work(ctx context.Context, b *buffer) error {
	w := &partWriter{m: m, ctx: ctx, b: b}
	for {
		p, ok, err := m.take(b)
		if err != nil || !ok {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		w.turn = p.turn
		if err := m.mergePart(p, b, w); err != nil {
			return err
		}
		if err := w.flush(); err != nil {
			return err
		}
		close(p.over)
	}
}

// take returns the next part, and false if there is none.
func (m *merge) take(b *buffer) (part, bool, error) {
	m.parts.Lock()
	defer m.parts.Unlock()
	p := part{n: m.next, from: m.from, turn: m.turn, over: make(chan struct{})}
	if p.n > len(m.splitters) {
		return p, false, nil
	}
	p.to = make([]int64, len(m.j.runs))
	for i, r := range m.j.runs {
		p.to[i] = r.end()
		if p.n == len(m.splitters) || p.from[i] == p.to[i] {
			continue
		}
		at, err := m.splitters[p.n].cutAt(&m.j.l, i, r, b.window(i))
		if err != nil {
			return p, false, err
		}
		p.to[i] = max(at, p.from[i])
	}
	if p.n > 0 && p.n < len(m.splitters) {
		p.skip = keysort.Common(m.splitters[p.n-1].key, m.splitters[p.n].key)
	}
	m.next++
	m.from, m.turn = p.to, p.over
	return p, true, nil
}

// mergePart merges a part to w.
func (m *merge) mergePart(p part, b *buffer, w *partWriter) error {
	cursors, err := p.open(m.j, m.j.runs, b)
	if err != nil {
		return err
	}
	if len(cursors) == 1 && m.j.spilled() && m.j.l.kind != kindKeyed {
		// Nothing to merge, and runs have no equal records where they must not.
		return cursors[0].file.rest(w.pass)
	}
	t, err := startTree(&m.j.l, cursors)
	if err != nil {
		return err
	}
	return t.each(b.last, w.add)
}
