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
	log      levelLog
	pace     time.Duration // to the next tick
	account  *Account      // nil before the first call of Account
	stopped  bool
}

// system is the part of the process that a budget reads and sets. Tests have their own.
type system struct {
	pressure.Machine
	golang  golang
	offHeap func() int64
	// watermark sets the bytes of off-heap memory beyond which a goroutine that takes more calls
	// passed; 0 is never.
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
// it by this.
func Running() *Budget {
	running.mu.Lock()
	defer running.mu.Unlock()
	return running.budget
}

// Start makes the process's budget. It sets Go's memory limit and GOGC, then and whenever the
// figures change, until Stop. A memory limit or a GOGC of the user's own stays: from the
// environment, or set by the program, before Start or later. Then [Stats] says so. Package auto
// calls Start for a program that imports it.
//
// The error says that another budget runs, which [Running] returns, why there is no limit, that
// FREEHOLD_MEMORY_LIMIT is not a size, or that the limit is below 8 MiB and not a cgroup's, as when
// bytes were taken for a larger unit. On an error nothing has changed. A limit below the present use
// is no error: see Stats.Short. A panic of Options.Logger in Start is the caller's, and the budget is
// stopped then.
//
// A process at rest wakes each two or three seconds if most of its limit is free, and ten times a
// second if all but the headroom is in use, to read files of /proc and /sys. It wakes 200 times a
// second for some microseconds while the pressure is not Calm, and once when off-heap memory has
// grown or a collection has ended (BenchmarkTick). Alloc and Free cost the same with a budget. A
// budget may be started in a testing/synctest bubble and used outside of it.
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
		log: levelLog{busy: true}, // until the start is reported
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
	s.onGrowth(b.makeRoom)
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
// Its hard limit is the memory that off-heap memory may take: the budget's limit less headroom,
// others, other heaps, and Go's floor. It follows within 5 ms when the budget finds that one of
// these has changed, as when the container is resized. A limit of SetLimits holds beside it, so
// the lower one counts. A limit that falls below the use takes no block away: the pressure rises,
// and requests for more are refused. Before a request is refused for this limit, free memory of
// all heaps is given back and Go's heap is collected, once a second at most: the caller waits for
// that.
//
// Its pressure is a part of the Budget's, and OnPressure of both is one list of functions. They
// are called when its soft limit is crossed, or a request refused. [Stats] has the figures of the
// calls. An account below has functions of its own, for its own limits.
//
// Stop lifts the limit, and the functions are not called from then on.
func (b *Budget) Account() *Account {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.account == nil {
		b.account = makeAccount(nil, &AccountOptions{Name: "process", Logger: b.options.Logger}, b.system.now, b)
		b.update()
	}
	return b.account
}

// Stop ends the budget. Go's memory limit and GOGC are then as they were before Start, except one
// that the program has changed since. Stop may be called twice. Another budget may be started after
// it.
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
