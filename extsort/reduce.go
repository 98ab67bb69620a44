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
	var total int64
	for _, r := range j.runs {
		total += r.bytes
	}
	j.progress.begin(Merging, total)
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
	cursors := make([]cursor, len(runs))
	var open []*cursor
	for i, r := range runs {
		c := &cursors[i]
		if err := c.open(&j.l, r, r.begin(), r.end(), b.window(i), 0); err != nil {
			return nil, err
		}
		c.order = i
		open = append(open, c)
	}
	w.begin(runs[0].seq)
	t, err := startTree(&j.l, open)
	if err != nil {
		return nil, err
	}
	done := 0
	err = t.each(&b.last, func(c *cursor) error {
		if done += len(c.stored); done >= 1<<20 {
			j.progress.add(int64(done))
			done = 0
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		return w.add(c.key, c.stored)
	})
	if err != nil {
		return nil, err
	}
	return w.end(), nil
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
