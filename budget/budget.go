// Budget: the loop that keeps Go's memory limit at what off-heap memory leaves.
//
// A tick reads the figures, and a step (step.go) decides. What is cheap is read at each
// tick, the system's figures ten times a second, and the limit is looked for each second.

package budget

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/freehold-go/freehold/internal/heap"
)

const (
	tickTime          = 5 * time.Millisecond
	ticksPerResident  = 20
	ticksPerSearch    = 200
	problemUsersLimit = "the program changed Go's memory limit, which the budget leaves alone from then on"
	problemUsersGC    = "the program changed GOGC, which the budget leaves alone from then on"
)

// ErrStarted is the error of [Start] while a budget runs.
var ErrStarted = errors.New("freehold: budget.Start: a budget runs already, and there is one in a process")

// ErrNoLimit is matched by the error of [Start] if no source has a limit. Then
// [Options].Limit or the variable is needed.
var ErrNoLimit = errors.New("no memory limit found: set Options.Limit or " + Environment)

// Budget keeps the process within its limit until Stop. It is safe for concurrent use. Make
// one with [Start].
type Budget struct {
	options Options
	system  system
	stop    chan struct{}
	wake    chan struct{}  // a round is due
	crossed chan struct{}  // the account's level has changed: a tick is due
	work    sync.WaitGroup // the loop, the rounds and a reclaim
	once    sync.Once
	relief  relief

	mu          sync.Mutex // guards what follows
	limit       limit
	problem     string // of the limit's sources
	others      int64
	ticks       uint64  // 32 bits would be used up in months
	userLimit   bool    // Go's memory limit is not the budget's to set
	userPercent bool    // nor is GOGC
	taken       string  // what the program took over while the budget ran
	original    setting // at Start
	current     setting // that the budget has made, or found
	plan        plan
	adjustments uint64
	reclaims    uint64
	reclaiming  chan struct{} // closed when the reclaim that runs has ended; nil if none does
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
	stallFile  string // of PSI; "" if there is none
	stallsTold bool   // the kernel tells of its stalls, so ticks do not read it
	signals    signals
	pressure   Pressure
	callbacks  callbacks
	told       Level     // that the callbacks know
	roundNext  time.Time // not before, unless the level rises or is Calm
	rounded    uint64
	log        levelLog
}

// system is what a budget reads and sets: tests have their own.
type system struct {
	machine
	golang  golang
	offHeap func() int64
	// watermark has passed called by who takes off-heap memory beyond some bytes; 0 is never.
	watermark func(bytes int64)
	onGrowth  func(passed func())
	trim      func() // all heaps
	now       func() time.Time
	sleep     func(time.Duration)
	ticks     func() (ticks <-chan time.Time, stop func())
	// watch calls f when tasks have waited for memory: see watchStalls.
	watch func(file string, f func()) (stop func(), err error)
}

func theSystem() system {
	return system{
		machine:   machine{os.DirFS("/"), os.LookupEnv, physicalMemory},
		golang:    newRuntime(),
		offHeap:   heap.OffHeap,
		watermark: heap.SetWatermark,
		onGrowth:  heap.OnGrowth,
		trim:      heap.TrimAll,
		now:       time.Now,
		sleep:     time.Sleep,
		ticks: func() (<-chan time.Time, func()) {
			t := time.NewTicker(tickTime)
			return t.C, t.Stop
		},
		watch: func(file string, f func()) (func(), error) { return watchStalls("/"+file, f) },
	}
}

var running struct {
	mu     sync.Mutex
	budget *Budget
}

// Running returns the budget that was started and not stopped, or nil. Exporters of metrics find
// it so.
func Running() *Budget {
	running.mu.Lock()
	defer running.mu.Unlock()
	return running.budget
}

// Start makes the process's budget and sets Go's memory limit and GOGC, then and whenever
// the figures change, until Stop. A memory limit or a GOGC of the user's own stays: from the
// environment, or set by the program, before Start or later. Then [Stats] says so.
//
// The error is [ErrStarted] while another budget runs. It is about the limit if that cannot be
// found, or if FREEHOLD_MEMORY_LIMIT is not a size; then nothing has changed. A limit below what
// is in use is no error: see Stats.Short. A panic of Options.Report or Options.Logger is the caller's:
// the budget is stopped then.
//
// It costs a goroutine that wakes 200 times a second for some microseconds and reads files of
// /proc and /sys ten times a second (BenchmarkTick). Alloc and Free cost what they cost without.
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
	found, problem := s.findLimit(o.Limit, nil)
	if found.bytes == 0 {
		return nil, fmt.Errorf("freehold: budget.Start: %w", problem)
	}
	b := &Budget{
		options: o, system: s,
		stop: make(chan struct{}), wake: make(chan struct{}, 1), crossed: make(chan struct{}, 1),
		limit: found, problem: text(problem),
		log: levelLog{busy: true}, // until the start is reported
	}
	g := s.golang.read()
	b.original = setting{g.limit, g.percent}
	b.current = b.original
	b.userLimit, b.userPercent = userSet(g, s.lookupEnv)
	b.stallFile = s.pressureFile("")
	s.onGrowth(b.makeRoom)
	b.tick()
	running.budget = b
	watch := stallWatch{stop: func() {}}
	b.watchStalls(&watch)
	b.work.Go(b.rounds)
	ticks, stopTicks := s.ticks()
	b.work.Go(func() {
		defer stopTicks()
		defer func() { watch.stop() }()
		for {
			select {
			case <-b.stop:
				return
			case <-b.crossed:
			case <-ticks:
			}
			b.tick()
			b.watchStalls(&watch)
		}
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
		close(b.stop)
		b.work.Wait()
		running.mu.Lock()
		defer running.mu.Unlock()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.system.watermark(0)
		b.set(b.original)
		if b.account != nil {
			b.account.follow(0)
		}
		running.budget = nil
	})
}

// tick looks at the figures and acts on them.
func (b *Budget) tick() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.update()
	_, pause := b.plan.patience(b.headroom())
	if pause > 0 && b.system.now().Sub(b.reclaimed) >= pause*b.reclaimTook {
		b.reclaim()
	}
}

// update is a tick without a reclaim. mu is held.
func (b *Budget) update() {
	if b.stopped {
		return
	}
	if b.ticks > 0 && b.ticks%ticksPerSearch == 0 {
		b.search()
	}
	g, charged, offHeap := b.system.golang.read(), b.charged(), b.system.offHeap()
	headroom := b.headroom()
	if b.ticks%ticksPerResident == 0 {
		// At the same moment, so that no memory counts twice.
		resident := b.system.residentOf(b.limit)
		b.others = max(resident-g.held-offHeap, 0)
		b.observe(resident > b.limit.bytes-headroom)
	}
	b.ticks++
	b.noteUser(setting{g.limit, g.percent})
	b.lives.note(g)
	f := figures{
		limit:       b.limit.bytes,
		headroom:    headroom,
		offHeap:     offHeap,
		charged:     charged,
		others:      b.others,
		goHeap:      b.options.GoHeap,
		golang:      g,
		live:        b.lives.least(),
		pressed:     b.taking > 0 && !b.system.now().Before(b.shortUntil),
		userLimit:   b.userLimit,
		userPercent: b.userPercent,
	}
	before := b.current
	if b.resigned {
		before.limit, b.resigned = math.MaxInt64, false
	}
	b.plan = step(f, before)
	b.set(b.plan.setting)
	b.setWatermark(offHeap)
	b.notePressure(f)
}

// headroom returns the bytes of the limit that are left free. mu is held.
func (b *Budget) headroom() int64 { return b.options.headroom(b.limit.bytes) }

// observe reads the system's signals. mu is held.
func (b *Budget) observe(full bool) {
	now := b.system.now()
	b.signals.observeEvents(b.system.files, b.limit, full, now)
	if b.stallFile == "" || b.stallsTold {
		return
	}
	if total, ok := stallTotal(b.system.files, b.stallFile); ok && b.signals.stall.observe(now, total) {
		b.signals.raise(Soft, now)
	}
}

// stallWatch is the kernel's trigger at a file of PSI. Only the loop has one.
type stallWatch struct {
	file string
	stop func()
}

// watchStalls has the kernel tell of the stalls of stallFile, if that is another one than the
// watch's, in place of ticks that read it. mu is not held, since stop waits for who takes it.
func (b *Budget) watchStalls(w *stallWatch) {
	b.mu.Lock()
	file := b.stallFile
	b.mu.Unlock()
	if file == w.file {
		return
	}
	w.stop()
	*w = stallWatch{file, func() {}}
	if file == "" {
		return
	}
	stop, err := b.system.watch(file, func() {
		b.mu.Lock()
		b.signals.raise(Soft, b.system.now())
		b.mu.Unlock()
		b.tick()
	})
	if err != nil {
		return // ticks read the file
	}
	w.stop = stop
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stallsTold = file == b.stallFile
}

// search looks for the limit again, and for the file of PSI: the process may have been moved. mu
// is held.
func (b *Budget) search() {
	found, problem := b.system.findLimit(b.options.Limit, b.limit.groups)
	b.problem = text(problem)
	if found.bytes > 0 {
		b.limit = found
	}
	if file := b.system.pressureFile(b.stallFile); file != b.stallFile {
		b.stallFile, b.stallsTold, b.signals.stall = file, false, stall{}
	}
}

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

// text returns an error in one line: joined ones have a line each.
func text(err error) string {
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
