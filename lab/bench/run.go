// Run: every row in turn, round after round.
//
// Within a round a load's rows follow one another, so that whatever changes on
// the machine changes for all of them; each round begins with another row, so
// that none is always first.

package bench

import (
	"context"
	"errors"
	"time"
)

const (
	retakes    = 3                // of a noisy sample
	quietWait  = 3 * time.Second  // before a retake
	quietTotal = 45 * time.Second // in one run; then noise is only marked
)

// A cell is all that one row showed on one load.
type cell struct {
	samples []sample
	failed  string // what the program said when it failed
}

func (c *cell) spread(u unit) spread {
	var v []float64
	for _, s := range c.samples {
		v = append(v, u.of(s))
	}
	return spreadOf(v)
}

// ratio compares figures of the same round, taken within a second or so of
// each other, and gives the spread over the rounds: what changes on a machine
// for minutes, such as where a virtual one's processors are, cancels out.
func ratio(u unit, own, other *cell) spread {
	var v []float64
	for _, a := range own.samples {
		for _, b := range other.samples {
			if a.Round == b.Round {
				v = append(v, u.of(a)/u.of(b))
			}
		}
	}
	return spreadOf(v)
}

func (c *cell) measured() bool { return c != nil && len(c.samples) > 0 }

func (c *cell) noisy() bool {
	for _, s := range c.samples {
		if s.Noisy {
			return true
		}
	}
	return false
}

// A run is the plan and what came of it.
type run struct {
	rows   []*row
	loads  []load
	rounds int
	limit  float64          // processors' worth of others' time that is still quiet
	blind  bool             // take samples whatever others do
	ticked func(load, *row) // called after each sample

	cells   map[string]map[string]*cell // by load key and row name
	taken   int
	retaken int
	noisy   int
	others  disturbance // over all samples that were kept
	took    time.Duration
	waited  time.Duration
}

// steps returns how many samples the plan has.
func (r *run) steps() (n int) {
	for _, l := range r.loads {
		for _, w := range r.rows {
			if l.of == "" && w.runs(l) {
				n += r.roundsOf(l)
			}
		}
	}
	return n
}

func (r *run) roundsOf(l load) int {
	if l.rounds > 0 {
		return min(l.rounds, r.rounds)
	}
	return r.rounds
}

func (r *run) cell(l load, w *row) *cell { return r.cells[l.key][w.name] }

// do measures everything, or stops early when ctx ends: then r has the samples until then.
func (r *run) do(ctx context.Context) error {
	r.cells = map[string]map[string]*cell{}
	for _, l := range r.loads {
		if r.cells[l.key] = r.cells[l.of]; l.of == "" {
			r.cells[l.key] = map[string]*cell{}
		}
	}
	start := time.Now()
	defer func() { r.took = time.Since(start) }()
	if _, err := readBusy(); err != nil {
		r.blind = true
	}
	for round := range r.rounds {
		for _, l := range r.loads {
			if l.of != "" || round >= r.roundsOf(l) {
				continue
			}
			for i := range r.rows {
				w := r.rows[(i+round)%len(r.rows)]
				if !w.runs(l) {
					continue
				}
				r.step(ctx, l, w, round)
				if ctx.Err() != nil {
					return ctx.Err()
				}
			}
		}
	}
	return nil
}

// step takes one sample, again if others were busy meanwhile.
func (r *run) step(ctx context.Context, l load, w *row, round int) {
	c := r.cells[l.key][w.name]
	if c == nil {
		c = &cell{}
		r.cells[l.key][w.name] = c
	}
	if r.ticked != nil {
		defer r.ticked(l, w)
	}
	if c.failed != "" {
		return
	}
	for attempt := 0; ; attempt++ {
		before, _ := readBusy()
		s, err := take(ctx, w, l)
		after, _ := readBusy()
		r.taken++
		if errors.Is(err, errSkip) || err != nil && ctx.Err() != nil {
			return
		}
		if err != nil {
			c.failed = err.Error()
			return
		}
		s.Round = round
		d := between(before, after)
		if !r.blind {
			s.Others = d.share()
			s.Noisy = l.unit.timed() && !l.disk && d.noisy(r.limit)
		}
		if s.Noisy && attempt < retakes && r.waited < quietTotal && ctx.Err() == nil {
			r.retaken++
			start := time.Now()
			awaitQuiet(r.limit, start.Add(quietWait))
			r.waited += time.Since(start)
			continue
		}
		if s.Noisy {
			r.noisy++
		}
		if !r.blind && l.unit.timed() && !l.disk {
			r.others.used += d.used
			r.others.wall += d.wall
		}
		c.samples = append(c.samples, s)
		return
	}
}
