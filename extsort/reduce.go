// Reduce: fewer and longer runs, where there are too many to merge at a time.

package extsort

import (
	"context"
	"slices"
)

// reduce merges groups of neighbouring runs until all can be merged at a time.
func (j *job) reduce(ctx context.Context) error {
	half := 0
	for j.spilled() && j.plan.buffers(1, len(j.runs), j.longest) == nil {
		half = 1 - half
		if err := j.reduceOnce(ctx, half); err != nil {
			return err
		}
	}
	return nil
}

// minFan is the least number of runs to merge at a time in each of several merges.
const minFan = 8

// reduceOnce merges as many runs at a time as there is memory for, several groups
// at a time unless these would be small.
func (j *job) reduceOnce(ctx context.Context, half int) error {
	n := min(j.plan.workers, len(j.runs)/2)
	for n > 1 && j.plan.fan(n, j.longest) < minFan {
		n--
	}
	fan := j.plan.fan(n, j.longest)
	buffers := j.plan.buffers(n, fan, j.longest)
	groups := slices.Collect(slices.Chunk(j.runs, fan))
	j.progress.begin(PhaseMerging, j.bytes())
	merged := make([]*run, len(groups))
	xs := j.plan.indexes(half, n)
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

// progressBytes is how much is merged between two reports.
const progressBytes = 1 << 20

// eachOf calls f for every record of the runs.
func (j *job) eachOf(ctx context.Context, runs []*run, b *buffer, f func(c *cursor) error) error {
	p := wholeRuns(runs)
	p.once = true
	cursors, err := p.open(&j.l, runs, b)
	if err != nil {
		return err
	}
	t, err := startTree(&j.l, cursors)
	if err != nil {
		return err
	}
	done := 0
	err = t.each(b.last, func(c *cursor) error {
		if done += len(c.stored); done >= progressBytes {
			j.progress.add(int64(done))
			done = 0
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		return f(c)
	})
	j.progress.add(int64(done))
	return err
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
