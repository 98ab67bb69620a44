// Budget: the loop that keeps Go's memory limit at what off-heap memory leaves.
//
// A tick reads the figures, and a step (step.go) decides. What is cheap is read at each tick, the
// system's figures ten times a second at most, and the limit is looked for once a second at most.
// While nothing happens ticks are rare: off-heap memory that grows (growth.go), a collection that
// ends and an account that is short (root.go) call for one.

package budget

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
	"github.com/freehold-go/freehold/internal/heap"
	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/sysmem"
)

const (
	tickTime          = 5 * time.Millisecond // unless the process is at rest: see figures.pace
	calmTime          = 3 * time.Second
	ticksPerSearch    = 3 // at rest
	problemUsersLimit = "the program changed Go's memory limit, which the budget leaves alone from then on"
	problemUsersGC    = "the program changed GOGC, which the budget leaves alone from then on"
)

// ErrStarted is the error of [Start] while a budget runs.
var ErrStarted = errors.New("freehold: budget.Start: a budget runs already, and there is one in a process")

// Budget keeps the process within its limit until Stop. It is safe for concurrent use. Make
// one with [Start].
type Budget struct {
	options Options
	system  system
	ticks   turns
	rounds  turns
	once    sync.Once
	relief  relief

	collecting sync.Mutex // locked while a reclaim runs, and unlocked by its goroutine

	mu          lockrank.Mutex[lockrank.Budget] // guards what follows
	watch       pressure.Watch
	userLimit   bool    // Go's memory limit is not the budget's to set
	userPercent bool    // nor is GOGC
	taken       string  // what the program took over while the budget ran
	original    setting // at Start
	current     setting // that the budget has made, or found
	plan        plan
	rise        int64         // off-heap memory may grow by it before the level rises
	pace        time.Duration // to the next tick
	adjustments uint64
	reclaims    uint64
	reclaiming  bool
	reclaimed   time.Time     // when the last reclaim ended
	reclaimTook time.Duration // by it
	granted     int64         // off-heap memory may grow to it, although Go holds too much
	lives       lives
	taking      int       // calls of makeRoom
	shortUntil  time.Time // waits are short until then: one was not worth it
	resigned    bool      // Go's limit may rise to what it holds, once: a wait was not worth it
	stopped     bool
	account     *Account // nil before it is asked for

	// For pressure.go.
	pressure  Pressure
	callbacks callbacks
	told      Level     // that the callbacks know
	roundNext time.Time // not before, unless the level rises or is Calm
	rounded   uint64
	danger    bool          // the level is Hard, and not for the account's sake alone
	pause     time.Duration // between rounds in danger
	log       levelLog
}

// system is what a budget reads and sets: tests have their own.
type system struct {
	pressure.Machine
	golang  golang
	offHeap func() int64
	// watermark has passed called by who takes off-heap memory beyond some bytes; 0 is never.
	watermark func(bytes int64)
	onGrowth  func(passed func())
	trim      func() // all heaps
	now       func() time.Time
	sleep     func(time.Duration)
	after     func(time.Duration, func())
	onCycle   func(f func() (more bool)) // calls f after each collection while there is more
}

func theSystem() system {
	return system{
		Machine:   pressure.Machine{Files: sysmem.Root(), LookupEnv: os.LookupEnv, Physical: sysmem.Physical},
		golang:    newRuntime(),
		offHeap:   pages.OffHeap,
		watermark: pages.SetWatermark,
		onGrowth:  pages.OnGrowth,
		trim:      heap.TrimAll,
		now:       time.Now,
		sleep:     time.Sleep,
		after:     afterFunc,
		onCycle:   onCycle,
	}
}

var running struct {
	mu     lockrank.Mutex[lockrank.Running]
	budget *Budget
}

// Running returns the budget that was started and not stopped, or nil. Exporters of metrics find
// it so.
func Running() *Budget {
	running.mu.Lock()
	defer running.mu.Unlock()
	return running.budget
}

// Start makes the process's budget and sets Go's memory limit and GOGC, then and whenever the
// figures change, until Stop. A memory limit or a GOGC of the user's own stays: from the
// environment, or set by the program, before Start or later. Then [Stats] says so. Package auto
// does this for a program that imports it.
//
// The error is [ErrStarted] while another budget runs. It is about the limit if that cannot be
// found, if FREEHOLD_MEMORY_LIMIT is not a size, or if the limit is below 8 MiB and not a
// cgroup's: that is bytes taken for a larger unit. Then nothing has changed. A limit below what
// is in use is no error: see Stats.Short. A panic of Options.Logger is the caller's: the budget
// is stopped then.
//
// A process at rest wakes each two or three seconds if most of its limit is free, and ten times a
// second if all but the headroom is in use, to read files of /proc and /sys. It wakes 200 times a
// second for some microseconds while the pressure is not Calm, and when off-heap memory has grown
// or a collection has ended (BenchmarkTick). Alloc and Free cost what they cost without. A budget
// may be started in a testing/synctest bubble and used outside of it.
func Start(o *Options) (*Budget, error) {
	if o == nil {
		o = &Options{}
	}
	o.check()
	return start(*o, theSystem())
}

func start(o Options, s system) (*Budget, error) {
	b, err := run(o, s)
	if err != nil {
		return nil, err
	}
	reported := false
	defer func() {
		if !reported { // a panic
			b.Stop()
		}
	}()
	b.report()
	reported = true
	return b, nil
}

// run starts a budget that has reported nothing yet.
func run(o Options, s system) (*Budget, error) {
	running.mu.Lock()
	defer running.mu.Unlock()
	if running.budget != nil {
		return nil, ErrStarted
	}
	b := &Budget{
		options: o, system: s,
		log: levelLog{busy: true}, // until the start is reported
	}
	if err := b.watch.Start(s.Machine, o.Limit, s.now()); err != nil {
		return nil, fmt.Errorf("freehold: budget.Start: %w", err)
	}
	if limit := b.watch.Limit(); limit < minGoHeap && !b.watch.OfGroup() {
		return nil, fmt.Errorf("freehold: budget.Start: %s of %s, want %s or more, which Go's heap needs alone", b.watch.Source(), pressure.FormatSize(limit), pressure.FormatSize(minGoHeap))
	}
	b.ticks = turns{do: b.turn, now: s.now, after: s.after}
	b.rounds = turns{do: b.round, now: s.now, after: s.after}
	g := s.golang.read()
	b.original = setting{g.limit, g.percent}
	b.current = b.original
	b.userLimit, b.userPercent = userSet(g, s.LookupEnv)
	s.onGrowth(b.makeRoom)
	b.tick()
	running.budget = b
	s.onCycle(func() (more bool) {
		b.ticks.within(tickTime)
		return !b.hasStopped()
	})
	return b, nil
}

// Stop ends the budget and restores Go's memory limit and GOGC as they were before Start, but
// for one that the program has changed since. It may be called twice. Another budget may be
// started after it.
func (b *Budget) Stop() {
	b.once.Do(func() {
		b.mu.Lock()
		b.stopped = true
		b.mu.Unlock()
		b.ticks.end()
		b.rounds.end()
		b.awaitReclaim()
		running.mu.Lock()
		defer running.mu.Unlock()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.system.watermark(0)
		b.set(b.original)
		if b.account != nil {
			b.account.node.Follow(0)
		}
		running.budget = nil
	})
}

// hasStopped reports whether Stop was called.
func (b *Budget) hasStopped() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stopped
}

// turn is a tick that returns when the next one is due.
func (b *Budget) turn() (next time.Duration) {
	b.tick()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pace
}

// tick looks at the figures and acts on them.
func (b *Budget) tick() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.update()
	_, pause := b.plan.patience(b.headroom())
	if pause > 0 && !pressure.Ahead(b.system.now(), b.reclaimed.Add(pause*b.reclaimTook)) {
		b.reclaim()
	}
}

// update is a tick without a reclaim. mu is held.
func (b *Budget) update() {
	if b.stopped {
		return
	}
	now := b.system.now()
	b.watch.Search(now, ticksPerSearch*b.pace)
	g, charged, offHeap := b.system.golang.read(), b.charged(), b.system.offHeap()
	limit, headroom := b.watch.Limit(), b.headroom()
	b.watch.Look(now, g.held+offHeap, limit-headroom)
	b.noteUser(setting{g.limit, g.percent})
	b.lives.note(g)
	f := figures{
		limit:       limit,
		headroom:    headroom,
		offHeap:     offHeap,
		charged:     charged,
		others:      b.watch.Others(),
		goHeap:      b.options.GoHeap,
		ungiven:     b.watch.Ungiven(),
		golang:      g,
		live:        b.lives.least(),
		pressed:     b.taking > 0 && !pressure.Ahead(now, b.shortUntil),
		userLimit:   b.userLimit,
		userPercent: b.userPercent,
	}
	before := b.current
	if b.resigned {
		before.limit, b.resigned = math.MaxInt64, false
	}
	b.plan = step(f, before)
	b.set(b.plan.setting)
	b.notePressure(f)
	b.setWatermark(offHeap)
	b.pace = f.pace()
	if _, pause := b.plan.patience(headroom); pause > 0 || b.taking > 0 || b.pressure.Level > Calm {
		b.pace = tickTime
	}
	b.ticks.within(b.pace)
}

// headroom returns the bytes of the limit that are left free. mu is held.
func (b *Budget) headroom() int64 { return b.options.headroom(b.watch.Limit()) }

// noteUser notes what is set, and whether the program has changed what was the budget's to
// set. mu is held.
func (b *Budget) noteUser(found setting) {
	if found.limit != b.current.limit && !b.userLimit {
		b.userLimit = true
		b.taken = joined(b.taken, problemUsersLimit)
	}
	if found.percent != b.current.percent && !b.userPercent {
		b.userPercent = true
		b.taken = joined(b.taken, problemUsersGC)
	}
	b.current = found
}

// set sets what is the budget's to set. A limit falls before GOGC changes and rises after
// it, so Go's heap is bounded meanwhile. mu is held.
func (b *Budget) set(s setting) {
	if b.userLimit {
		s.limit = b.current.limit
	}
	if b.userPercent {
		s.percent = b.current.percent
	}
	if s == b.current {
		return
	}
	b.adjustments++
	before, found := b.current, s
	if s.limit < before.limit {
		found.limit = swap(b.system.golang.setLimit, before.limit, s.limit)
	}
	if s.percent != before.percent {
		found.percent = swap(b.system.golang.setPercent, before.percent, s.percent)
	}
	if s.limit > before.limit {
		found.limit = swap(b.system.golang.setLimit, before.limit, s.limit)
	}
	b.current = s
	b.noteUser(found)
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
