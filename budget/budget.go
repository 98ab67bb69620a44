// Budget: its beginning, its account and its end.

package budget

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
	"github.com/freehold-go/freehold/internal/heap"
	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/sysmem"
)

var errStarted = errors.New("freehold: budget.Start: a budget runs already, and there is one in a process")

// Budget keeps the process within its limit until Stop. It is safe for concurrent use. Make one
// with [Start].
type Budget struct {
	options   Options
	system    system
	callbacks callbacks
	ticks     turns
	rounds    turns
	reclaims  reclaims
	relief    relief
	once      sync.Once // of Stop

	mu       lockrank.Mutex[lockrank.Budget] // guards the fields below
	watch    pressure.Watch
	lives    lives
	settings settings
	plan     plan // of the last tick
	growth   growth
	alarm    alarm
	reported reported
	logging  bool          // a line is being written; the next one begins after it
	pace     time.Duration // to the next tick
	account  *Account      // nil before the first call of Account
	stopped  bool
}

// system is the part of the process that a budget reads and sets. Tests have their own.
type system struct {
	pressure.Machine
	golang  golang
	offHeap func() int64
	// watermark sets a threshold in bytes; 0 means never. A goroutine that takes off-heap memory
	// beyond it calls the function that onGrowth has set.
	watermark func(bytes int64)
	onGrowth  func(passed func())
	trim      func() // trims all heaps
	now       func() time.Time
	sleep     func(time.Duration)
	after     func(time.Duration, func())
	onCycle   func(f func() (more bool)) // calls f after each collection until f returns false
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

// Running returns the budget that was started and not stopped, or nil. Exporters of metrics use it.
func Running() *Budget {
	running.mu.Lock()
	defer running.mu.Unlock()
	return running.budget
}

// Start makes the process's budget. It sets Go's memory limit and GOGC at once, and again whenever
// the figures change, until Stop. It leaves alone a memory limit or GOGC that the environment or
// the program has set, before Start or later. [Stats] reports that. Package auto calls Start for a
// program that imports it.
//
// Start returns an error if
//
//   - another budget runs: [Running] returns it
//   - no source has a limit: the error matches [ErrNoLimit]
//   - FREEHOLD_MEMORY_LIMIT is not a size
//   - the limit is below 8 MiB and not a cgroup's: its unit is probably missing
//
// On an error nothing has changed. A limit below the present use is no error: see Stats.Short. If
// Options.Logger panics in Start, the budget is stopped and the caller gets the panic.
//
// A process at rest wakes to read files of /proc and /sys: every one to three seconds if most of
// its limit is free, and ten times a second if all but the headroom is in use. While the pressure
// is not Calm it wakes 200 times a second, for a few microseconds each (BenchmarkTick). Off-heap
// memory that grows and the end of a collection wake it once. Alloc and Free cost the same with a
// budget. A budget may be started in a testing/synctest bubble and used outside of it.
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
		return nil, errStarted
	}
	b := &Budget{
		options: o, system: s,
		logging: true, // until the start is reported
	}
	if err := b.watch.Start(s.Machine, o.Limit, s.now()); err != nil {
		return nil, fmt.Errorf("freehold: budget.Start: %w", err)
	}
	if limit := b.watch.Limit(); limit < minGoHeap && !b.watch.OfGroup() {
		return nil, fmt.Errorf("freehold: budget.Start: %s of %s, want %s or more, which Go's heap needs alone",
			b.watch.Source(), pressure.FormatSize(limit), pressure.FormatSize(minGoHeap))
	}
	b.settings = newSettings(s.golang, s.LookupEnv)
	b.ticks = turns{do: b.turn, now: s.now, after: s.after}
	b.rounds = turns{do: b.round, now: s.now, after: s.after}
	s.onGrowth(b.waitForGo)
	b.tick()
	running.budget = b
	s.onCycle(func() (more bool) {
		b.ticks.within(tickTime)
		return !b.hasStopped()
	})
	return b, nil
}

// Account returns the account of the process, for subsystems and tenants below it. The first call
// makes it, and all calls return the same one. Close it before or after Stop: blocks stay until
// then.
//
// Its hard limit is the budget's limit less headroom, others, other heaps and Go's floor: the least
// memory that Go needs. The budget sets it again whenever it reads these figures: within 5 ms of
// the end of a collection, and about ten seconds at most after a container is resized. SetLimits
// sets a second limit beside it, and the lower one holds. If the limit falls below the use, blocks
// stay: the pressure rises, and requests for more are refused. Before this limit refuses a request,
// the budget trims all heaps and collects Go's heap, once a second at most. The caller waits for
// that.
//
// Its pressure raises the Budget's. Its OnPressure is Budget.OnPressure, so these functions are
// also called when its soft limit is crossed or it refuses a request. An account below has
// functions of its own, for its own limits.
//
// Stop removes the limit, and calls of the functions end.
func (b *Budget) Account() *Account {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.account == nil {
		b.account = makeAccount(nil, &AccountOptions{Name: "process", Logger: b.options.Logger}, b.system.now, b)
		b.update()
	}
	return b.account
}

// Stop ends the budget. It restores Go's memory limit and GOGC of before Start, except a setting
// that the program has changed since. A second Stop is a no-op. Another budget may be started
// afterwards.
func (b *Budget) Stop() {
	b.once.Do(func() {
		b.mu.Lock()
		b.stopped = true
		b.mu.Unlock()
		b.ticks.end()
		b.rounds.end()
		b.reclaims.wait()
		running.mu.Lock()
		defer running.mu.Unlock()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.system.watermark(0)
		b.settings.set(b.settings.original)
		if b.account != nil {
			b.account.node.Follow(0)
		}
		running.budget = nil
	})
}
