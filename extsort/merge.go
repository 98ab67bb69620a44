// Merge: all runs to the output, in parts that are merged concurrently.
//
//	run 0  |---------|-----------|------|
//	run 1  |----|----------|------------|
//	run 2  |------------|-----|---------|
//	        part 0     part 1   part 2
//
// A splitter is a key that cuts each run at the first record not less than it. Splitters come
// from the marks of the runs. If a key has many records, a splitter is one of them: the order of
// runs and of records in a run breaks ties.
//
// Workers take the parts in order, merge each to a buffer, and write the buffers in order. If
// the buffer is full before the part's turn, the worker waits for the turn and then writes the
// buffer whenever it is full.

package extsort

import (
	"cmp"
	"context"
	"io"
	"slices"
	"sort"
	"sync"

	"github.com/freehold-go/freehold/internal/keysort"
)

type merge struct {
	j         *job
	splitters []splitter
	out       *writer

	parts sync.Mutex    // guards the following
	next  int           // number of the next part
	from  []int64       // its beginning in each run
	turn  chan struct{} // its turn
}

// mergeTo merges all runs to out.
func (j *job) mergeTo(ctx context.Context, out *writer) error {
	if err := j.reduce(ctx); err != nil {
		return err
	}
	var buffers []*buffer
	if j.spilled() {
		buffers = buffersOf(j.plan, j.plan.workers+1, len(j.runs), j.longest)
	} else {
		for i := range j.plan.workers {
			buffers = append(buffers, &buffer{out: j.plan.writer(i)[:0]})
		}
	}
	m := &merge{j: j, splitters: splitters(&j.l, j.runs, j.partBytes(buffers[0])), out: out, from: wholeRuns(j.runs).from, turn: make(chan struct{})}
	close(m.turn) // the first part need not wait
	j.progress.begin(PhaseWriting, j.bytes())
	return all(ctx, len(buffers), func(ctx context.Context, i int) error { return m.work(ctx, buffers[i]) })
}

// partBytes returns the size of a part. A part fits in the buffer twice, so that a worker
// rarely waits for its turn, and takes about three quarters of each window.
func (j *job) partBytes(b *buffer) int64 {
	if !j.spilled() {
		return int64(cap(b.out))
	}
	return int64(min(cap(b.out)/2, len(j.runs)*b.each*3/4))
}

// work merges parts until none is left.
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

// take returns the next part, or false if there is none.
func (m *merge) take(b *buffer) (part, bool, error) {
	m.parts.Lock()
	defer m.parts.Unlock()
	p := part{from: m.from, turn: m.turn, over: make(chan struct{})}
	if m.next > len(m.splitters) {
		return p, false, nil
	}
	p.to = make([]int64, len(m.j.runs))
	for i, r := range m.j.runs {
		p.to[i] = r.end()
		if m.next == len(m.splitters) || p.from[i] == p.to[i] {
			continue
		}
		at, err := m.splitters[m.next].cutAt(&m.j.l, i, r, b.window(i))
		if err != nil {
			return p, false, err
		}
		p.to[i] = max(at, p.from[i])
	}
	if m.next > 0 && m.next < len(m.splitters) {
		p.skip = keysort.Common(m.splitters[m.next-1].key, m.splitters[m.next].key)
	}
	m.next++
	m.from, m.turn = p.to, p.over
	return p, true, nil
}

// mergePart merges part p to w.
func (m *merge) mergePart(p part, b *buffer, w *partWriter) error {
	cursors, err := p.open(m.j, m.j.runs, b)
	if err != nil {
		return err
	}
	if len(cursors) == 1 && m.j.spilled() && m.j.l.kind != kindKeyed {
		// One run has all records of the part. With unique it has no equal ones.
		return cursors[0].file.rest(w.pass)
	}
	t, err := startTree(&m.j.l, cursors)
	if err != nil {
		return err
	}
	return t.each(b.last, w.add)
}

// A partWriter collects the output of a part in b.out.
type partWriter struct {
	m    *merge
	ctx  context.Context
	b    *buffer
	turn chan struct{} // of the part
}

// add appends the record of c in raw form.
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

// addRaw appends b.
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

// pass writes b behind the buffer, without a copy of b in it.
func (w *partWriter) pass(b []byte) error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.m.out.add(b)
}

// flush waits for the part's turn, and writes the buffer.
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

// A splitter is a record at which a part begins.
type splitter struct {
	key    []byte // its first bytes, fewer than maxKeyBytes
	run    int
	at     int64 // place of the record in its run: an offset or a number of an entry
	exact  bool  // run and at break ties; if not, all equal keys are in one part
	weight int64 // bytes from this candidate to the next one of its run
}

// maxSplitters is the most candidates that splitters looks at.
const maxSplitters = 1 << 16

// splitters returns splitters that cut runs into parts of about partBytes.
func splitters(l *layout, runs []*run, partBytes int64) []splitter {
	var total, marks int64
	for _, r := range runs {
		total += r.bytes
		marks += int64(candidates(r, partBytes))
	}
	every := int(marks/maxSplitters) + 1
	all := make([]splitter, 0, marks/int64(every)+int64(len(runs)))
	for i, r := range runs {
		n := candidates(r, partBytes)
		for j := 0; j < n; j += every {
			s := candidate(r, j, n)
			s.run = i
			s.exact = len(s.key) < maxKeyBytes && !l.unique
			s.key = s.key[:min(len(s.key), maxKeyBytes-1)]
			s.weight = r.bytes * int64(min(every, n-j)) / int64(n)
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b splitter) int {
		return cmp.Or(l.compare(a.key, b.key), cmp.Compare(a.run, b.run), cmp.Compare(a.at, b.at))
	})
	chosen := all[:0]
	var size, done int64
	for _, s := range all {
		if size >= partBytes && total-done > partBytes/2 && (s.exact || len(chosen) == 0 || l.compare(chosen[len(chosen)-1].key, s.key) != 0) {
			chosen = append(chosen, s)
			size = 0
		}
		size += s.weight
		done += s.weight
	}
	return slices.Clip(chosen)
}

// candidates returns how many records of r can be splitters.
func candidates(r *run, partBytes int64) int {
	if r.file != nil {
		return r.marks.len()
	}
	return int(min(int64(len(r.entries)), r.bytes/max(partBytes/64, 1)+1))
}

// candidate returns candidate i of n.
func candidate(r *run, i, n int) splitter {
	if r.file != nil {
		return splitter{key: r.marks.key(i), at: r.marks.at(i)}
	}
	at := int64(len(r.entries)) * int64(i) / int64(n)
	e := r.entries[at]
	return splitter{key: r.text[e.At:][:e.N], at: at}
}

// before reports whether a record of run i with the given key comes before s. The record is
// not s itself.
func (s *splitter) before(l *layout, i int, key []byte) bool {
	c := l.compare(key, s.key)
	return c < 0 || c == 0 && s.exact && i < s.run
}

// cutAt returns the place in run i, which is r, of the first record not less than s. It reads a
// run's file through window.
func (s *splitter) cutAt(l *layout, i int, r *run, window []byte) (int64, error) {
	if s.exact && i == s.run {
		return s.at, nil
	}
	if r.file == nil {
		n := sort.Search(len(r.entries), func(j int) bool {
			e := r.entries[j]
			return !s.before(l, i, r.text[e.At:][:e.N])
		})
		return int64(n), nil
	}
	n := sort.Search(r.marks.len(), func(j int) bool { return !s.before(l, i, r.marks.key(j)) })
	if n == 0 {
		return r.from, nil
	}
	from, to := r.marks.at(n-1), r.to
	if n < r.marks.len() {
		to = r.marks.at(n)
	}
	var records fileReader
	if err := records.open(l, r.file, from, to, window); err != nil {
		return 0, err
	}
	for at := from; ; {
		key, stored, err := records.next()
		if err == io.EOF {
			return to, nil
		}
		if err != nil || !s.before(l, i, key) {
			return at, err
		}
		at += int64(len(stored))
	}
}
