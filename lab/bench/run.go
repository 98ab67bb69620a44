// Run: every peer in turn, round after round.
//
// Within a round a benchmark's peers follow one another, so that whatever changes on
// the machine changes for all of them; each round begins with another peer, so
// that none is always first.

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
)

// sampleTimeout is far beyond any load: a program that takes longer hangs.
const sampleTimeout = 5 * time.Minute

// A sample is what one run of a program found.
type sample struct {
	*benchfmt.Result
	round int
	noisy bool // other programs used the machine meanwhile
}

// value returns the figure in a unit as it was told.
func (s sample) value(unit string) (float64, bool) {
	for _, v := range s.Values {
		if v.OrigUnit == unit {
			return v.OrigValue, true
		}
		if v.Unit == unit {
			return v.Value, true
		}
	}
	return 0, false
}

// A cell is all that one peer showed on one benchmark.
type cell struct {
	samples []sample
	failed  string // what the program said when it failed
}

func (c *cell) measured() bool { return c != nil && len(c.samples) > 0 }

func (c *cell) noisy() bool {
	return slices.ContainsFunc(c.samples, func(s sample) bool { return s.noisy })
}

// figures returns the samples' figures in a unit, with their median.
func (c *cell) figures(unit string) spread {
	var all []float64
	for _, s := range c.samples {
		if v, ok := s.value(unit); ok {
			all = append(all, v)
		}
	}
	return spreadOf(all)
}

// ratio compares figures of the same round, taken within a second or so of
// each other, and gives the spread over the rounds: what changes on a machine
// for minutes, such as where a virtual one's processors are, cancels out.
func ratio(unit string, own, other *cell) spread {
	var all []float64
	for _, a := range own.samples {
		for _, b := range other.samples {
			x, ok := a.value(unit)
			y, also := b.value(unit)
			if ok && also && a.round == b.round {
				all = append(all, x/y)
			}
		}
	}
	return spreadOf(all)
}

// A spread is some figures in ascending order, and their median.
type spread struct {
	values []float64
	median float64
}

func spreadOf(all []float64) spread {
	if len(all) == 0 {
		return spread{}
	}
	s := benchmath.NewSample(all, &benchmath.DefaultThresholds)
	return spread{s.Values, benchmath.AssumeNothing.Summary(s, 0.95).Center}
}

func (s spread) least() float64 { return s.values[0] }
func (s spread) most() float64  { return s.values[len(s.values)-1] }

// A run is the plan and what came of it.
type run struct {
	scale
	benchmarks []*benchmark
	limit      float64                // processors' worth of others' time that is still quiet
	blind      bool                   // take samples whatever others do
	ticked     func(*benchmark, peer) // called after each sample

	cells  map[string]map[string]*cell // by benchmark and peer
	taken  int
	noisy  int
	others disturbance // over all samples
	took   time.Duration
}

// steps returns how many samples the plan has.
func (r *run) steps() (n int) {
	for _, b := range r.benchmarks {
		n += r.roundsOf(b) * len(b.peers)
	}
	return n
}

func (r *run) roundsOf(b *benchmark) int {
	if b.rounds > 0 {
		return min(b.rounds, r.rounds)
	}
	return r.rounds
}

func (r *run) cell(b *benchmark, p peer) *cell { return r.cells[b.name][p.name] }

// do measures everything, or stops early when ctx ends: then r has the samples until then.
func (r *run) do(ctx context.Context) error {
	r.cells = map[string]map[string]*cell{}
	start := time.Now()
	defer func() { r.took = time.Since(start) }()
	if _, err := readBusy(); err != nil {
		r.blind = true
	}
	for round := range r.rounds {
		for _, b := range r.benchmarks {
			if round >= r.roundsOf(b) {
				continue
			}
			for i := range b.peers {
				r.step(ctx, b, b.peers[(i+round)%len(b.peers)], round)
				if ctx.Err() != nil {
					return ctx.Err()
				}
			}
		}
	}
	return nil
}

// step takes one sample.
func (r *run) step(ctx context.Context, b *benchmark, p peer, round int) {
	if r.cells[b.name] == nil {
		r.cells[b.name] = map[string]*cell{}
	}
	c := r.cells[b.name][p.name]
	if c == nil {
		c = &cell{}
		r.cells[b.name][p.name] = c
	}
	if r.ticked != nil {
		defer r.ticked(b, p)
	}
	if c.failed != "" {
		return
	}
	// The kernel's writing to the disk looks like other programs.
	judged := !r.blind && b.group.name != "Lines" && b.group.name != "Frozen"
	before, _ := readBusy()
	result, cmd, err := take(ctx, p, r.args(b, p))
	after, _ := readBusy()
	r.taken++
	if errors.Is(err, errSkip) || err != nil && ctx.Err() != nil {
		return
	}
	if err != nil {
		c.failed = err.Error()
		return
	}
	s := sample{Result: result, round: round}
	if _, timed := s.value("ns/op"); judged && timed {
		d := between(before, after, cmd)
		r.others.used += d.used
		r.others.wall += d.wall
		if s.noisy = d.noisy(r.limit); s.noisy {
			r.noisy++
		}
	}
	c.samples = append(c.samples, s)
}

// errSkip is a program's own word that it cannot run a benchmark.
var errSkip = errors.New("skipped")

// take runs p's program once.
func take(ctx context.Context, p peer, args []string) (*benchfmt.Result, *exec.Cmd, error) {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	var said, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = &said, &complaint
	err := cmd.Run()
	var found *benchfmt.Result
	for in := benchfmt.NewReader(bytes.NewReader(said.Bytes()), p.name); in.Scan(); {
		if r, ok := in.Result().(*benchfmt.Result); ok {
			found = r.Clone()
		}
	}
	switch {
	case err != nil:
		lines := strings.Split(strings.TrimSpace(said.String()+complaint.String()), "\n")
		return nil, cmd, fmt.Errorf("%w: %s", err, strings.Join(lines[max(0, len(lines)-12):], "\n"))
	case found == nil:
		return nil, cmd, errSkip
	}
	return found, cmd, nil
}
