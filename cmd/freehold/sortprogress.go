// The bar of freehold sort.

package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/extsort"
)

// sortProgress shows a bar for long work. An interrupted sort may report progress even after close.
type sortProgress struct {
	mu      sync.Mutex // guards the following
	closed  bool
	bar     *cli.Bar
	began   time.Time // of the phase
	started time.Time
	phase   extsort.Phase
}

func newSortProgress(w io.Writer) *sortProgress {
	now := time.Now()
	return &sortProgress{bar: cli.NewBar(w, 100*time.Millisecond), began: now, started: now}
}

// longWork is how long a sort runs before it shows a bar.
const longWork = time.Second

func (p *sortProgress) show(now extsort.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	t := time.Now()
	if now.Phase != p.phase {
		p.phase, p.began = now.Phase, t
	}
	if t.Sub(p.started) >= longWork {
		p.bar.Show(sortState(now, t.Sub(p.began)))
	}
}

// sortState returns the fraction of all work that is done, and a text with the rate and the time
// left.
func sortState(now extsort.Progress, elapsed time.Duration) (fraction float64, text string) {
	rate := float64(now.Done) / max(elapsed.Seconds(), 1e-3)
	text = fmt.Sprintf("%s %s, %s/s", now.Phase, cli.Bytes(now.Done), cli.Bytes(int64(rate)))
	if now.Total == 0 {
		return 0, text
	}
	part := min(1, float64(now.Done)/float64(now.Total))
	if rate > 0 {
		left := time.Duration(float64(now.Total-min(now.Done, now.Total)) / rate * float64(time.Second))
		text = fmt.Sprintf("%s %s of %s, %s/s, %v left", now.Phase, cli.Bytes(now.Done), cli.Bytes(now.Total), cli.Bytes(int64(rate)), left.Round(time.Second))
	}
	switch now.Phase {
	case extsort.PhaseReading:
		return part / 2, text
	case extsort.PhaseMerging:
		return 0.5 + part/4, text
	}
	return 0.75 + part/4, text
}

func (p *sortProgress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.bar.Clear()
}
