// Reduce: merges runs to fewer and longer ones until the rest can be merged at once.
//
// The memory of n merges at a time, which is plan.rest:
//
//	rest    | buffer | buffer | ...
//	buffer  | out | last | window | window | ...

package extsort

import (
	"context"
	"slices"

	"github.com/freehold-go/freehold/internal/vm"
)

// A buffer is the memory of one merge: a window for each run, and the output.
type buffer struct {
	windows []byte
	each    int // bytes of a window
	out     []byte
	last    []byte // the previous key, to drop records with equal keys
	cursors []cursor
}

// window returns window i, which is empty if the runs are in memory.
func (b *buffer) window(i int) []byte { return b.windows[i*b.each:][:b.each] }

// maxPartBytes is the most bytes of a merge's output to keep in memory.
const maxPartBytes = 4 << 20

// buffersOf divides p.rest between up to n merges, each of runs runs with records of up to
// maxStored bytes. It returns nil if there is not enough memory for one.
func buffersOf(p *plan, n, runs, maxStored int) []*buffer {
	least := max(p.leastWindow(), maxStored) + 2*blockAlign
	last := vm.RoundUp(maxStored, blockAlign)
	for ; n > 0; n-- {
		each := len(p.rest) / n &^ (blockAlign - 1)
		out := min(each/4&^(blockAlign-1), maxPartBytes)
		window := (each - out - last) / max(runs, 1) &^ (blockAlign - 1)
		if window < least {
			continue
		}
		bs := make([]*buffer, n)
		for i := range bs {
			mem := p.rest[i*each:][:each]
			bs[i] = &buffer{out: mem[:0:out], last: mem[out : out : out+last], windows: mem[out+last:], each: window}
		}
		return bs
	}
	return nil
}

// fan returns how many runs each of n concurrent merges can take. It returns 0 if that is less
// than two.
func fan(p *plan, n, maxStored int) int {
	runs := 0
	for len(buffersOf(p, n, max(2, runs+1), maxStored)) == n {
		runs = max(2, runs+1)
	}
	return runs
}

// A part is a range of each run: [from[i], to[i]) of run i.
type part struct {
	from, to []int64
	skip     int  // length of a prefix that all its keys share
	once     bool // the runs are not read again, so the merge frees their disk space

	turn, over chan struct{} // closed when the part may write its output, and when it has
}

// wholeRuns returns the part with all records of the runs.
func wholeRuns(runs []*run) part {
	var p part
	for _, r := range runs {
		p.from, p.to = append(p.from, r.begin()), append(p.to, r.end())
	}
	return p
}

// open returns a cursor for each run that has records in the part. They use b's windows.
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

// reduce merges groups of neighbouring runs until one merge can take all runs.
func (j *job) reduce(ctx context.Context) error {
	for passes := j.passes(); passes > 0; passes-- {
		j.progress.begin(PhaseMerging, j.bytes()*int64(passes))
		if err := j.reduceOnce(ctx); err != nil {
			return err
		}
	}
	return nil
}

// minFan is the least fan of concurrent merges.
const minFan = 8

// passes returns how many passes over all runs reduce needs.
func (j *job) passes() (n int) {
	for runs := len(j.runs); j.spilled() && buffersOf(j.plan, 1, runs, j.longest) == nil; n++ {
		_, size := j.groups(runs)
		runs = (runs + size - 1) / size
	}
	return n
}

// groups returns how many groups of runs to merge concurrently, and how many runs a group has.
func (j *job) groups(runs int) (n, size int) {
	n = min(j.plan.workers, runs/2)
	for n > 1 && fan(j.plan, n, j.longest) < minFan {
		n--
	}
	return n, fan(j.plan, n, j.longest)
}

// reduceOnce merges each group of runs to one run.
func (j *job) reduceOnce(ctx context.Context) error {
	n, size := j.groups(len(j.runs))
	buffers := buffersOf(j.plan, n, size, j.longest)
	groups := slices.Collect(slices.Chunk(j.runs, size))
	merged := make([]*run, len(groups))
	xs := indexes(j.plan.marks, n)
	err := all(ctx, n, func(ctx context.Context, i int) error {
		f, err := j.createFile(i)
		if err != nil {
			return err
		}
		return writing(j.plan.writer(i), 0, f.WriteAt, func(out *writer) error {
			w := &runWriter{l: &j.l, file: f, w: out, x: xs[i]}
			for g := i; g < len(groups); g += n {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if merged[g], err = j.mergeGroup(ctx, groups[g], buffers[i], w); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	j.closeFilesOf(j.runs)
	j.runs = merged
	return nil
}

// mergeGroup merges runs to one.
func (j *job) mergeGroup(ctx context.Context, runs []*run, b *buffer, w *runWriter) (*run, error) {
	w.begin(runs[0].seq)
	if err := j.eachOf(ctx, runs, b, func(c *cursor) error { return w.add(c.key, c.stored) }); err != nil {
		return nil, err
	}
	return w.end(), nil
}

// each reduces the runs, merges the rest, and calls f for every record as tree.each does.
func (j *job) each(ctx context.Context, f func(c *cursor) error) error {
	if err := j.reduce(ctx); err != nil {
		return err
	}
	b := &buffer{}
	if j.spilled() {
		b = buffersOf(j.plan, 1, len(j.runs), j.longest)[0]
	}
	j.progress.begin(PhaseWriting, j.bytes())
	return j.eachOf(ctx, j.runs, b, f)
}

// eachOf merges runs and calls f for every record as tree.each does.
func (j *job) eachOf(ctx context.Context, runs []*run, b *buffer, f func(c *cursor) error) error {
	p := wholeRuns(runs)
	p.once = true
	cursors, err := p.open(j, runs, b)
	if err != nil {
		return err
	}
	t, err := startTree(&j.l, cursors)
	if err != nil {
		return err
	}
	done := 0
	return t.each(b.last, func(c *cursor) error {
		if done += len(c.stored); done >= progressBytes {
			done = 0
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		return f(c)
	})
}

// closeFilesOf closes the files of runs, which frees their disk space.
func (j *job) closeFilesOf(runs []*run) {
	for _, r := range runs {
		if i := slices.Index(j.files, r.file); i >= 0 {
			_ = r.file.Close()
			j.files = slices.Delete(j.files, i, i+1)
		}
	}
}
