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
	"cmp"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/lab/run"
	"github.com/freehold-go/freehold/lab/subject"
)

// A Sawtooth describes the load. Bytes are requested ones.
type Sawtooth struct {
	Sizes      Sizes         `default:"both" enum:"big,small,both" help:"Chunk sizes: big (16 B to 4 MiB), small (16 B to 64 KiB) or both, half of the bytes from each."`
	High       cli.Size      `default:"${half}" help:"Live bytes at the top of a cycle, never passed, such as 16GiB; GiB or G is 1024 MiB, GB is 1000 MB. Default: half of the memory."`
	Low        cli.Size      `kong:"-"` // and at its end
	Cycles     int           `default:"10" help:"How many times to rise and fall."`
	Goroutines int           `default:"${processors}" help:"How many allocate at once. Default: GOMAXPROCS."`
	Settle     time.Duration `default:"2s" help:"Idle time after each fall, for memory to go back; the heap's decay is 1s."`
	Seed       uint64        `default:"1" help:"Seed of the random sizes and choices."`
	Limit      cli.Size      `placeholder:"SIZE" help:"Hard limit on the heap's memory, to see what happens there. Default: none."`
}

// share is a goroutine's share of some bytes.
func (l Sawtooth) share(n cli.Size) int64 { return int64(n) / int64(l.Goroutines) }

// Check returns an error for a load that cannot be run.
func (l Sawtooth) Check() error {
	return cmp.Or(
		Between("--goroutines", l.Goroutines, 1, 1<<16),
		Between("--cycles", l.Cycles, 1, 1<<20),
		Between("--settle", l.Settle, 0, 24*time.Hour),
		Between("--high", l.High, cli.Size(l.Sizes.Max()*int64(l.Goroutines)), unbounded), // a chunk for each
		Between("--low", l.Low, 0, l.High-1),
		Between("--high: a table of chunks of", cli.Size(float64(l.High)/l.Sizes.mean()*1.25*float64(chunkBytes)), 0, PartOfMemory(1)),
	)
}

// A Tooth is one finished cycle, or the last fall to nothing. What is -1 was not measured.
type Tooth struct {
	PeakRSS     int64         `json:"peak_rss" show:"peak RSS" unit:"B"`
	AfterFall   int64         `json:"fall_rss" show:"after fall" unit:"B"`
	AfterSettle int64         `json:"settle_rss" show:"after settle" unit:"B"`
	PeakLive    int64         `json:"peak_live"`
	Live        int64         `json:"live" show:"live" unit:"B"`                       // at the end of the cycle
	Ratio       float64       `json:"fragmentation" show:"resident per live" unit:"x"` // without what was resident at the start: 1 is perfect
	Rise        time.Duration `json:"rise_s" show:"rise s"`
	Fall        time.Duration `json:"fall_s" show:"fall s"`
	Total       time.Duration `json:"total_s" show:"total s"`
}

// A SawtoothOutcome has the figures so far: the worst of all cycles, and the end.
// What is -1 was not measured.
type SawtoothOutcome struct {
	Table       int64    `json:"table" show:"table of chunks, part of all that is resident" unit:"B"`
	Chunks      int64    `json:"chunks" show:"chunks, each checked before it was freed" unit:"n"`
	Start       int64    `json:"start_rss" show:"resident at the start" unit:"B"` // with the table
	PeakRSS     int64    `json:"peak_rss" show:"resident, peak" unit:"B"`
	AfterFall   int64    `json:"fall_rss" show:"resident after the fall, worst" unit:"B"`
	AfterSettle int64    `json:"settle_rss" show:"resident after the decay, worst" unit:"B"`
	Live        int64    `json:"live" show:"live then" unit:"B"`
	Ratio       float64  `json:"fragmentation" show:"resident per live, worst" unit:"x"`
	EndSettle   int64    `json:"end_rss" show:"all freed, after the decay" unit:"B"`
	EndTrim     int64    `json:"trim_rss" show:"all freed, after Trim" unit:"B"`
	EndLive     int64    `json:"end_live" show:"live in the end" unit:"B"`
	Teeth       []Tooth  `json:"teeth"`   // finished cycles, and the end
	Samples     []Sample `json:"samples"` // over the whole time
}

// sawtooth is a load running on an allocator.
type sawtooth struct {
	Sawtooth
	allocator *subject.Allocator
	shares    []*share
	meter     *meter
	out       SawtoothOutcome
	tell      run.Writer
	stages    int // that have begun
	stage     atomic.Pointer[run.Message]
}

// Run runs the load, and tells of each finished cycle. On an error the outcome holds what had
// been measured until then.
func (l Sawtooth) Run(a *subject.Allocator, tell run.Writer) (*SawtoothOutcome, error) {
	s := &sawtooth{Sawtooth: l, allocator: a, tell: tell}
	s.prepare()
	defer s.meter.watch(s.report)()
	for n := 1; n <= s.Cycles+1; n++ {
		if err := s.cycle(n); err != nil {
			return s.outcome(), fmt.Errorf("in %s, %s live: %w", s.stage.Load().Text, cli.Bytes(s.live()), err)
		}
		s.tell.Part(s.outcome())
	}
	s.allocator.Trim()
	s.out.EndTrim = s.meter.take().RSS
	if blocks := a.Live(); s.live() != 0 || blocks > 0 {
		return s.outcome(), fmt.Errorf("everything is freed, yet %d bytes and %d blocks count as live", s.live(), blocks)
	}
	return s.outcome(), nil
}

// shareChunks returns how many chunks a share has room for, more than it needs.
func (l Sawtooth) shareChunks() float64 {
	const slack = 1024
	return float64(l.High)/l.Sizes.mean()/float64(l.Goroutines)*1.25 + slack
}

// prepare makes the table and notes the resident memory before the load.
func (s *sawtooth) prepare() {
	perShare := int(s.shareChunks())
	for i := range s.Goroutines {
		sh := &share{
			high: s.share(s.High), low: s.share(s.Low),
			rng: rand.New(rand.NewPCG(s.Seed, uint64(i))), sizes: s.Sizes,
		}
		sh.chunks = make([]chunk, perShare)
		for i := range sh.chunks {
			sh.chunks[i].stamp = 1 // touches the table's pages
		}
		sh.chunks = sh.chunks[:0]
		s.shares = append(s.shares, sh)
	}
	s.out = SawtoothOutcome{Table: int64(perShare*s.Goroutines) * chunkBytes, EndSettle: -1, EndTrim: -1, EndLive: -1, Ratio: -1}
	s.enter("the start")
	s.meter = newMeter(s.live)
	s.out.Start = s.meter.take().RSS
}

// cycle is one rise, fall and settle. The one after the last only falls, to nothing.
func (s *sawtooth) cycle(n int) (err error) {
	t := Tooth{PeakRSS: -1, Ratio: -1}
	name, last := fmt.Sprintf("cycle %d of %d", n, s.Cycles), n > s.Cycles
	if last {
		name = "the end"
	}
	s.meter.takePeak()
	s.enter(name + ", rise")
	if !last {
		if t.Rise, err = s.parallel(func(sh *share) error { return sh.grow(s.allocator) }); err != nil {
			return err
		}
	}
	t.PeakLive = s.meter.take().Live

	s.enter(name + ", fall")
	if t.Fall, err = s.parallel(func(sh *share) error {
		if last {
			return sh.shrink(s.allocator, 0)
		}
		return sh.shrink(s.allocator, sh.low)
	}); err != nil {
		return err
	}
	after := s.meter.take()
	t.AfterFall, t.Live = after.RSS, after.Live

	s.enter(name + ", settle")
	time.Sleep(s.Settle)
	t.AfterSettle = s.meter.take().RSS
	t.Total = t.Rise + t.Fall + s.Settle
	o := &s.out
	if last {
		o.EndSettle, o.EndLive = t.AfterSettle, t.Live
	} else {
		t.PeakRSS = s.meter.takePeak()
		if t.Live > 0 {
			t.Ratio = float64(t.AfterSettle-o.Start) / float64(t.Live)
		}
		o.PeakRSS, o.AfterFall, o.AfterSettle = max(o.PeakRSS, t.PeakRSS), max(o.AfterFall, t.AfterFall), max(o.AfterSettle, t.AfterSettle)
		o.Live, o.Ratio = t.Live, max(o.Ratio, t.Ratio)
	}
	o.Teeth = append(o.Teeth, t)
	return nil
}

// parallel runs f for every share, each in a goroutine of its own.
func (s *sawtooth) parallel(f func(*share) error) (time.Duration, error) {
	began := time.Now()
	var g errgroup.Group
	for _, sh := range s.shares {
		g.Go(func() error { return f(sh) })
	}
	err := g.Wait()
	return time.Since(began), err
}

// live returns the bytes in live chunks.
func (s *sawtooth) live() (n int64) {
	for _, sh := range s.shares {
		n += sh.live.Load()
	}
	return n
}

// outcome returns the figures so far.
func (s *sawtooth) outcome() *SawtoothOutcome {
	s.out.Samples, s.out.Chunks = s.meter.held(), 0
	for _, sh := range s.shares {
		s.out.Chunks += sh.count
	}
	return &s.out
}

// enter begins a stage. Each cycle has three stages.
func (s *sawtooth) enter(name string) {
	s.stage.Store(&run.Message{Progress: float64(s.stages) / float64(3*s.Cycles+4), Text: name})
	s.stages++
}

// report passes progress on.
func (s *sawtooth) report(now Sample) {
	m := s.stage.Load()
	s.tell.Progress(m.Progress, fmt.Sprintf("%s: resident %s, live %s", m.Text, cli.Bytes(now.RSS), cli.Bytes(now.Live)))
}
