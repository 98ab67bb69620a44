// Merge: all runs to the output, in parts.
//
// Workers take the parts in order, merge each in memory, and pass them on in
// order. A part that is larger than its buffer waits for its turn when the
// buffer is full, and then keeps it.

package extsort

import (
	"context"
	"sync"
)

// An output gets the sorted records in raw form, in order.
type output interface {
	add(b []byte) error
}

type merge struct {
	*job
	splitters []splitter
	out       output

	mu   sync.Mutex // guards the following
	next int        // part
	from []int64    // where it begins in each run

	turn turns
}

// turns lets the parts write one after the other.
type turns struct {
	mu    sync.Mutex
	cond  sync.Cond
	now   int
	ended bool // by an error: nobody waits any more
}

func (t *turns) wait(part int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.now != part && !t.ended {
		t.cond.Wait()
	}
	return !t.ended
}

func (t *turns) pass() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now++
	t.cond.Broadcast()
}

func (t *turns) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.cond.Broadcast()
}

// mergeTo merges all runs to out.
func (j *job) mergeTo(ctx context.Context, out output) error {
	if err := j.reduce(ctx); err != nil {
		return err
	}
	inMemory := !j.spilled()
	var buffers []*buffer
	if inMemory {
		for i := range j.plan.workers {
			mem := j.plan.writer(i)
			buffers = append(buffers, &buffer{out: mem[:0]})
		}
	} else {
		buffers = j.plan.buffers(j.plan.workers+1, len(j.runs), j.longest)
	}
	var total int64
	for _, r := range j.runs {
		total += r.bytes
	}
	part := partBytes(buffers, len(j.runs), inMemory)
	m := &merge{job: j, splitters: splitters(&j.l, j.runs, part), out: out}
	m.turn.cond.L = &m.turn.mu
	for _, r := range j.runs {
		m.from = append(m.from, r.begin())
	}
	j.progress.begin(Writing, total)
	return all(ctx, len(buffers), func(ctx context.Context, i int) error {
		defer context.AfterFunc(ctx, m.turn.end)()
		return m.work(ctx, buffers[i])
	})
}

// partBytes returns how much to merge at a time: little enough for the output to
// be written while it is in cache, and enough to read a good piece of each run.
func partBytes(buffers []*buffer, runs int, inMemory bool) int64 {
	if inMemory {
		return int64(cap(buffers[0].out))
	}
	b := buffers[0]
	return int64(min(cap(b.out)/2, runs*b.each*3/4))
}

// A part is the records between two splitters.
type part struct {
	n        int
	from, to []int64
	skip     int
}

// take returns the next part, and false if there is none.
func (m *merge) take(b *buffer) (part, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := part{n: m.next, from: m.from}
	if p.n > len(m.splitters) {
		return p, false, nil
	}
	p.to = make([]int64, len(m.runs))
	for i, r := range m.runs {
		p.to[i] = r.end()
		if p.n == len(m.splitters) || p.from[i] == p.to[i] {
			continue
		}
		var window []byte
		if r.file != nil {
			window = b.window(i)
		}
		at, err := m.splitters[p.n].cutAt(&m.l, i, r, window)
		if err != nil {
			return p, false, err
		}
		p.to[i] = max(at, p.from[i])
	}
	if p.n > 0 && p.n < len(m.splitters) {
		p.skip = commonPrefix(m.splitters[p.n-1].key, m.splitters[p.n].key)
	}
	m.next++
	m.from = p.to
	return p, true, nil
}

func (m *merge) work(ctx context.Context, b *buffer) error {
	cursors := make([]cursor, len(m.runs))
	w := &partWriter{m: m, b: b}
	for {
		p, ok, err := m.take(b)
		if err != nil || !ok {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		w.ctx, w.part, w.hasTurn = ctx, p.n, false
		if err := m.mergePart(p, b, cursors, w); err != nil {
			return err
		}
		if err := w.flush(); err != nil {
			return err
		}
		m.turn.pass()
	}
}

// mergePart merges a part to w.
func (m *merge) mergePart(p part, b *buffer, cursors []cursor, w *partWriter) error {
	var open []*cursor
	for i, r := range m.runs {
		if p.from[i] == p.to[i] {
			continue
		}
		var window []byte
		if r.file != nil {
			window = b.window(i)
		}
		c := &cursors[i]
		if err := c.open(&m.l, r, p.from[i], p.to[i], window, p.skip); err != nil {
			return err
		}
		c.order = i
		open = append(open, c)
	}
	if len(open) == 1 && open[0].file != nil && m.l.kind != kindKeyed {
		// Nothing to merge, and runs have no equal records where they must not.
		return open[0].copyTo(w)
	}
	t, err := startTree(&m.l, open)
	if err != nil {
		return err
	}
	return t.each(&b.last, w.add)
}

// copyTo passes the whole part on.
func (c *cursor) copyTo(w *partWriter) error {
	for {
		if err := w.flush(); err != nil {
			return err
		}
		if err := w.m.write(c.data); err != nil {
			return err
		}
		c.data = nil
		if c.next >= c.to {
			return nil
		}
		if err := c.fill(); err != nil {
			return err
		}
	}
}

// A partWriter collects the output of a part.
type partWriter struct {
	m       *merge
	ctx     context.Context // of the merge
	b       *buffer
	part    int
	hasTurn bool
}

// add appends a record.
func (w *partWriter) add(c *cursor) error {
	l := &w.m.l
	if l.kind != kindKeyed {
		return w.addRaw(c.stored)
	}
	if len(c.stored) > cap(w.b.out)-len(w.b.out) {
		if err := w.flush(); err != nil {
			return err
		}
		if len(c.stored) > cap(w.b.out) {
			return w.addLong(c.stored)
		}
	}
	w.b.out = l.appendRaw(w.b.out, c.stored)
	return nil
}

// addLong writes a record that is larger than the buffer.
func (w *partWriter) addLong(stored []byte) error {
	record := w.m.l.record(stored)
	head, tail := w.m.l.frame(len(record))
	for _, b := range [][]byte{head, record, tail} {
		if err := w.addRaw(b); err != nil {
			return err
		}
	}
	return nil
}

func (w *partWriter) addRaw(b []byte) error {
	if len(b) > cap(w.b.out)-len(w.b.out) {
		if err := w.flush(); err != nil {
			return err
		}
		if len(b) > cap(w.b.out) {
			return w.m.write(b)
		}
	}
	w.b.out = append(w.b.out, b...)
	return nil
}

// flush writes the buffer, when it is the part's turn.
func (w *partWriter) flush() error {
	if !w.hasTurn && !w.m.turn.wait(w.part) {
		return context.Cause(w.ctx)
	}
	w.hasTurn = true
	err := w.m.write(w.b.out)
	w.b.out = w.b.out[:0]
	return err
}

func (m *merge) write(b []byte) error {
	m.progress.add(int64(len(b)))
	return m.out.add(b)
}
