// Reduce: fewer and longer runs, where there are too many to merge at a time.

package extsort

import (
	"context"
	"slices"
)

// reduce merges groups of neighbouring runs until all can be merged at a time.
func (j *job) reduce(ctx context.Context) error {
	for passes := j.passes(); passes > 0; passes-- {
		j.progress.begin(PhaseMerging, j.bytes()*int64(passes))
		if err := j.reduceOnce(ctx); err != nil {
			return err
		}
	}
	return nil
}

// minFan is the least number of runs to merge at a time in each of several merges.
const minFan = 8

// passes returns how many times all runs must be merged to fewer.
func (j *job) passes() (n int) {
	for runs := len(j.runs); j.spilled() && j.plan.buffers(1, runs, j.longest) == nil; n++ {
		_, fan := j.groups(runs)
		runs = (runs + fan - 1) / fan
	}
	return n
}

// groups returns how many groups of so many runs to merge at a time, and the size of
// one.
func (j *job) groups(runs int) (n, fan int) {
	n = min(j.plan.workers, runs/2)
	for n > 1 && j.plan.fan(n, j.longest) < minFan {
		n--
	}
	return n, j.plan.fan(n, j.longest)
}

// reduceOnce merges as many runs at a time as there is memory for, several groups
// at a time unless these would be small.
func (j *job) reduceOnce(ctx context.Context) error {
	n, fan := j.groups(len(j.runs))
	buffers := j.plan.buffers(n, fan, j.longest)
	groups := slices.Collect(slices.Chunk(j.runs, fan))
	merged := make([]*run, len(groups))
	xs := j.plan.indexes(n)
	err := all(ctx, n, func(ctx context.Context, i int) error {
		f, err := j.createFile(i)
		if err != nil {
			return err
		}
		return writing(j.plan.writer(i), 0, f.writeAt, func(out *writer) error {
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

// each reduces the runs and calls f for every record, as tree.each does.
func (j *job) each(ctx context.Context, f func(c *cursor) error) error {
	if err := j.reduce(ctx); err != nil {
		return err
	}
	b := &buffer{}
	if j.spilled() {
		b = j.plan.buffers(1, len(j.runs), j.longest)[0]
	}
	j.progress.begin(PhaseWriting, j.bytes())
	return j.eachOf(ctx, j.runs, b, f)
}

// progressBytes is how much is merged between two looks at the context or reports.
const progressBytes = 1 << 20

// eachOf calls f for every record of the runs.
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

// closeFilesOf gives the disk space of runs back.
func (j *job) closeFilesOf(runs []*run) {
	for _, r := range runs {
		if i := slices.Index(j.files, r.file); i >= 0 {
			_ = r.file.f.Close()
			j.files = slices.Delete(j.files, i, i+1)
		}
	}
}
