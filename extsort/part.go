// Part: the records between two splitters, and who writes them.

package extsort

import "context"

// A part is a piece of each run.
type part struct {
	n        int
	from, to []int64
	skip     int  // bytes that its keys share
	once     bool // nobody reads the runs again: their space is freed meanwhile

	turn, over chan struct{} // closed when it may write its output, and when it has
}

// wholeRuns returns the part that is all of the runs.
func wholeRuns(runs []*run) part {
	var p part
	for _, r := range runs {
		p.from, p.to = append(p.from, r.begin()), append(p.to, r.end())
	}
	return p
}

// open returns cursors of the runs that the part has records of, with b's windows.
func (p *part) open(j *job, runs []*run, b *buffer) ([]*cursor, error) {
	if b.cursors == nil {
		b.cursors = make([]cursor, len(runs))
	}
	var open []*cursor
	for i, r := range runs {
		if p.from[i] == p.to[i] {
			continue
		}
		c := &b.cursors[i]
		*c = cursor{l: &j.l, read: j.progress, order: i, skip: p.skip, file: fileReader{once: p.once}}
		if err := c.open(r, p.from[i], p.to[i], b.window(i)); err != nil {
			return nil, err
		}
		open = append(open, c)
	}
	return open, nil
}

// A partWriter collects the output of a part.
type partWriter struct {
	m    *merge
	ctx  context.Context // of the merge
	b    *buffer
	turn chan struct{} // of the part
}

// add appends a record.
func (w *partWriter) add(c *cursor) error {
	if c.l.kind != kindKeyed {
		return w.addRaw(c.stored)
	}
	if len(c.stored) <= cap(w.b.out)-len(w.b.out) {
		w.b.out = c.l.appendRaw(w.b.out, c.stored)
		return nil
	}
	return c.l.eachRaw(c.stored, w.addRaw)
}

func (w *partWriter) addRaw(b []byte) error {
	if len(b) > cap(w.b.out)-len(w.b.out) {
		if err := w.flush(); err != nil {
			return err
		}
		if len(b) > cap(w.b.out) {
			return w.m.out.add(b)
		}
	}
	w.b.out = append(w.b.out, b...)
	return nil
}

// pass writes b without a copy.
func (w *partWriter) pass(b []byte) error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.m.out.add(b)
}

// flush writes the buffer, when it is the part's turn.
func (w *partWriter) flush() error {
	select {
	case <-w.turn:
	case <-w.ctx.Done():
		return context.Cause(w.ctx)
	}
	err := w.m.out.add(w.b.out)
	w.b.out = w.b.out[:0]
	return err
}
