// Sawtooth: a load that rises and falls.
//
//	live bytes
//	high  -    /|     /|     /|
//	          / |    / |    / |        rise: allocate chunks of random size
//	         /  |   /  |   /  |        fall: free chunks at random
//	low   - /   |__/   |__/   |__      settle: wait, idle, for memory to go back
//	       /                     |__
//	0     -                           all freed: settle, then trim
//
// An allocator that strands free memory between the survivors, or keeps it for
// itself, shows in the resident memory after the settle.

package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/lab/subject"
	"github.com/freehold-go/freehold/lab/wire"
)

// A Sawtooth says what the load does. Bytes are those asked for.
type Sawtooth struct {
	Sizes      Sizes         `json:"sizes"`
	High       int64         `json:"high"` // live bytes at the top of a cycle, never passed
	Low        int64         `json:"low"`  // and at its end
	Cycles     int           `json:"cycles"`
	Goroutines int           `json:"goroutines"`
	Seed       uint64        `json:"seed"`
	Settle     time.Duration `json:"settle"` // idle time after a fall
}

// A Tooth is one finished cycle.
type Tooth struct {
	Start       int64         `json:"start_rss"` // before the first cycle
	PeakRSS     int64         `json:"peak_rss" show:"peak RSS" unit:"B"`
	AfterFall   int64         `json:"fall_rss" show:"after fall" unit:"B"`
	AfterSettle int64         `json:"settle_rss" show:"after settle" unit:"B"`
	PeakLive    int64         `json:"peak_live"`
	Live        int64         `json:"live" show:"live" unit:"B"` // at the end of the cycle
	Ratio       float64       `json:"fragmentation" show:"resident per live" unit:"x"`
	Rise        time.Duration `json:"rise_s" show:"rise s"`
	Fall        time.Duration `json:"fall_s" show:"fall s"`
	Total       time.Duration `json:"total_s" show:"total s"`
}

// finish fills in what follows from the other figures. The ratio is what the process holds beyond
// what it held at the start, for each byte that is live: 1 is perfect.
func (t *Tooth) finish(settle time.Duration) {
	t.Ratio = -1
	if t.Live > 0 {
		t.Ratio = float64(t.AfterSettle-t.Start) / float64(t.Live)
	}
	t.Total = t.Rise + t.Fall + settle
}

// Ending is what is left when everything is freed.
type Ending struct {
	AfterFall   int64 `json:"afterFall"` // RSS
	AfterSettle int64 `json:"afterSettle"`
	AfterTrim   int64 `json:"afterTrim"`
	Live        int64 `json:"live"`      // 0, or the load is wrong
	Allocated   int64 `json:"allocated"` // as the allocator counts, -1 if it does not
}

// A SawtoothOutcome is what was measured, as far as it came.
type SawtoothOutcome struct {
	Table   int64    `json:"table"`   // bytes of the table of chunks, part of every RSS
	Start   int64    `json:"start"`   // RSS with the table in place and nothing allocated
	Chunks  int64    `json:"chunks"`  // allocated, in all
	Teeth   []Tooth  `json:"teeth"`   // finished cycles
	End     *Ending  `json:"end"`     // nil if it did not come that far
	Samples []Sample `json:"samples"` // over the whole time
}

// sawtooth is a load running on an allocator.
type sawtooth struct {
	Sawtooth
	allocator *subject.Allocator
	shares    []*share
	meter     *meter
	out       SawtoothOutcome

	tell wire.Writer

	mu    sync.Mutex // guards stage
	stage stage
}

// A stage is what the sawtooth is doing, for progress.
type stage struct {
	name     string
	cycle    int
	from, to int64 // live bytes it begins and ends with; equal if it waits
	began    time.Time
	at, part float64 // where it lies within its cycle: its start and its length
}

// Run runs the load, and tells of each finished cycle. On an error, which may be ctx's, the
// outcome holds what had been measured until then.
func (l Sawtooth) Run(ctx context.Context, a *subject.Allocator, tell wire.Writer) (*SawtoothOutcome, error) {
	s := &sawtooth{Sawtooth: l, allocator: a, tell: tell}
	s.prepare()
	stop := s.meter.watch(s.report)
	defer func() {
		stop()
		s.out.Samples = s.meter.samples
		for _, sh := range s.shares {
			s.out.Chunks += sh.count
		}
	}()
	for n := 1; n <= s.Cycles; n++ {
		if err := s.cycle(ctx, n); err != nil {
			return &s.out, fmt.Errorf("in cycle %d, %s, %s live: %w", n, s.stage.name, cli.Bytes(s.live()), err)
		}
		s.tell.Part(s.out.Teeth[n-1])
	}
	if err := s.end(ctx); err != nil {
		return &s.out, fmt.Errorf("at the end, %s, %s live: %w", s.stage.name, cli.Bytes(s.live()), err)
	}
	return &s.out, nil
}

// shareChunks returns how many chunks a share has room for, more than it needs.
func (l Sawtooth) shareChunks() float64 {
	const slack = 1024
	return float64(l.High)/l.Sizes.mean()/float64(l.Goroutines)*1.25 + slack
}

// TableBytes returns the size of the table of chunks.
func (l Sawtooth) TableBytes() float64 {
	return l.shareChunks() * float64(l.Goroutines) * float64(chunkBytes)
}

// prepare makes the table and notes the resident memory before the load.
func (s *sawtooth) prepare() {
	perShare := int(s.shareChunks())
	for i := range s.Goroutines {
		sh := &share{
			high: s.High / int64(s.Goroutines), low: s.Low / int64(s.Goroutines),
			rng: rand.New(rand.NewPCG(s.Seed, uint64(i))), sizes: s.Sizes,
		}
		sh.chunks = make([]chunk, perShare)
		for i := range sh.chunks {
			sh.chunks[i].stamp = 1 // touches the table's pages
		}
		sh.chunks = sh.chunks[:0]
		s.out.Table += int64(perShare) * chunkBytes
		s.shares = append(s.shares, sh)
	}
	s.meter = newMeter(s.live)
	s.out.Start = s.meter.take().RSS
}

// cycle is one rise, fall and settle.
func (s *sawtooth) cycle(ctx context.Context, n int) error {
	t := Tooth{Start: s.out.Start}
	s.meter.takePeak()
	var err error

	s.enter(stage{name: "rise", cycle: n, from: s.live(), to: s.High, at: 0, part: 0.5})
	if t.Rise, err = s.parallel(ctx, func(ctx context.Context, sh *share) error { return sh.grow(ctx, s.allocator) }); err != nil {
		return err
	}
	t.PeakLive = s.meter.take().Live

	s.enter(stage{name: "fall", cycle: n, from: s.live(), to: s.Low, at: 0.5, part: 0.15})
	if t.Fall, err = s.parallel(ctx, func(ctx context.Context, sh *share) error { return sh.shrink(ctx, s.allocator, sh.low) }); err != nil {
		return err
	}
	after := s.meter.take()
	t.AfterFall, t.Live = after.RSS, after.Live

	settled, err := s.settle(ctx, n, 0.65, 0.35)
	if err != nil {
		return err
	}
	t.AfterSettle = s.meter.take().RSS
	t.PeakRSS = s.meter.takePeak()
	t.finish(settled)
	s.out.Teeth = append(s.out.Teeth, t)
	return nil
}

// end frees everything.
func (s *sawtooth) end(ctx context.Context) error {
	var e Ending
	var err error
	n := s.Cycles + 1
	s.enter(stage{name: "free all", cycle: n, from: s.live(), to: 0, at: 0, part: 0.3})
	if _, err = s.parallel(ctx, func(ctx context.Context, sh *share) error { return sh.shrink(ctx, s.allocator, 0) }); err != nil {
		return err
	}
	after := s.meter.take()
	e.AfterFall, e.Live, e.Allocated = after.RSS, after.Live, s.allocator.Allocated()
	if _, err = s.settle(ctx, n, 0.3, 0.7); err != nil {
		return err
	}
	e.AfterSettle = s.meter.take().RSS
	s.allocator.Trim()
	e.AfterTrim = s.meter.take().RSS
	s.out.End = &e
	if e.Live != 0 || e.Allocated > 0 {
		return fmt.Errorf("everything is freed, yet %d bytes count as live and %d as allocated", e.Live, e.Allocated)
	}
	return nil
}

// parallel runs f for every share, each in a goroutine of its own.
func (s *sawtooth) parallel(ctx context.Context, f func(context.Context, *share) error) (time.Duration, error) {
	began := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for _, sh := range s.shares {
		g.Go(func() error { return f(ctx, sh) })
	}
	err := g.Wait()
	return time.Since(began), err
}

// settle waits, idle.
func (s *sawtooth) settle(ctx context.Context, cycle int, at, part float64) (time.Duration, error) {
	s.enter(stage{name: "settle", cycle: cycle, at: at, part: part})
	began := time.Now()
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(s.Settle):
		return time.Since(began), nil
	}
}

// live returns the bytes in live chunks.
func (s *sawtooth) live() (n int64) {
	for _, sh := range s.shares {
		n += sh.live.Load()
	}
	return n
}

func (s *sawtooth) enter(st stage) {
	st.began = time.Now()
	s.mu.Lock()
	s.stage = st
	s.mu.Unlock()
}

// report passes progress on.
func (s *sawtooth) report(now Sample) {
	s.mu.Lock()
	st := s.stage
	s.mu.Unlock()
	done := 1.0
	if st.from != st.to {
		done = float64(now.Live-st.from) / float64(st.to-st.from)
	} else if s.Settle > 0 {
		done = time.Since(st.began).Seconds() / s.Settle.Seconds()
	}
	done = st.at + st.part*min(max(done, 0), 1)
	name := fmt.Sprintf("cycle %d/%d %-6s", st.cycle, s.Cycles, st.name)
	if st.cycle > s.Cycles {
		name = "the end, " + st.name
	}
	s.tell.Progress((float64(st.cycle-1)+done)/float64(s.Cycles+1),
		fmt.Sprintf("%s  resident %s, live %s", name, cli.Bytes(now.RSS), cli.Bytes(now.Live)))
}
