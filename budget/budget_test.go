// Budgets, on a runtime and files of the test's own, and on the process.

package budget

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
	"github.com/freehold-go/freehold/internal/test/cgroups"
)

type tree = cgroups.Tree

var v2 = cgroups.V2

const (
	machinePressure = "proc/pressure/memory"
	mib             = 1 << 20
	gib             = 1 << 30
	pod             = cgroups.Pod
	app             = cgroups.App
)

var formatSize = pressure.FormatSize

// fake is a system whose figures the test sets. mu guards it.
type fake struct {
	mu        sync.Mutex
	files     tree
	variables map[string]string
	physical  int64
	offHeap   int64
	golang    goFigures
	set       []string // which settings, in order
	reclaims  int
	reclaimed chan bool // a reclaim waits for it, unless nil
	clock     time.Time
	due       time.Time // of the last timer
	timer     func()
	cycle     func() (more bool) // a collection has ended
	watermark int64
	passed    func() // by off-heap memory
	onReclaim func() // under mu
	trims     int
	onTrim    func() // under mu
}

// ample is GOGC while a newFake has enough of 1000 MiB: the heap grows to four tenths of them.
const ample = 9900

func newFake() *fake {
	return &fake{
		files: tree{}, physical: 1 << 30, clock: time.Unix(1e9, 0),
		golang: goFigures{held: 10 * mib, outside: 2 * mib, live: 4 * mib, limit: math.MaxInt64, percent: 100},
	}
}

func (f *fake) system() system {
	return system{
		Machine: pressure.Machine{
			Files: fileSystem{f},
			LookupEnv: func(name string) (string, bool) {
				v, ok := f.variables[name]
				return v, ok
			},
			Physical: func() (int64, error) { return locked(f, func() int64 { return f.physical }), nil },
		},
		golang:    f,
		offHeap:   func() int64 { return locked(f, func() int64 { return f.offHeap }) },
		watermark: func(n int64) { f.change(func() { f.watermark = n }) },
		onGrowth:  func(passed func()) { f.passed = passed },
		trim: func() {
			f.change(func() {
				f.trims++
				if f.onTrim != nil {
					f.onTrim()
				}
			})
		},
		sleep: func(d time.Duration) { f.change(func() { f.clock = f.clock.Add(d) }) },
		now:   func() time.Time { return locked(f, func() time.Time { return f.clock }) },
		after: func(d time.Duration, timer func()) {
			f.change(func() { f.due, f.timer = f.clock.Add(d), timer })
		},
		onCycle: func(cycle func() bool) { f.cycle = cycle },
	}
}

type fileSystem struct{ f *fake }

func (fs fileSystem) Open(name string) (fs.File, error) {
	return locked(fs.f, func() tree { return fs.f.files }).Open(name)
}

func locked[T any](f *fake, get func() T) T {
	f.mu.Lock()
	defer f.mu.Unlock()
	return get()
}

func (f *fake) change(how func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	how()
}

func (f *fake) read() goFigures { return locked(f, func() goFigures { return f.golang }) }
func (f *fake) setLimit(n int64) (before int64) {
	f.change(func() { before, f.golang.limit = f.golang.limit, n; f.set = append(f.set, "limit") })
	return before
}
func (f *fake) setPercent(n int) (before int) {
	f.change(func() { before, f.golang.percent = f.golang.percent, n; f.set = append(f.set, "percent") })
	return before
}
func (f *fake) freeOSMemory() {
	f.change(func() {
		f.reclaims++
		if f.onReclaim != nil {
			f.onReclaim()
		}
	})
	if f.reclaimed != nil {
		<-f.reclaimed
	}
}

func (f *fake) now() time.Time { return locked(f, func() time.Time { return f.clock }) }
func (f *fake) mark() int64    { return locked(f, func() int64 { return f.watermark }) }

// tick does the next n ticks.
func (f *fake) tick(n int) {
	for range n {
		var timer func()
		f.change(func() {
			if timer = f.timer; f.clock.Before(f.due) {
				f.clock = f.due
			}
		})
		timer()
	}
}

// pass does the ticks that are due within a time.
func (f *fake) pass(d time.Duration) {
	for end := f.now().Add(d); !locked(f, func() time.Time { return f.due }).After(end); {
		f.tick(1)
	}
}

func mustStart(t *testing.T, o Options, f *fake) *Budget {
	t.Helper()
	b, err := start(o, f.system())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Stop)
	return b
}

func (f *fake) want(t *testing.T, limit int64, percent int) {
	t.Helper()
	if g := f.read(); g.limit != limit || g.percent != percent {
		t.Errorf("limit is %d (%s), GOGC %d, want %d (%s), %d", g.limit, formatSize(g.limit), g.percent, limit, formatSize(limit), percent)
	}
}

func TestBudgetFollowsTheFigures(t *testing.T) {
	f := newFake()
	b := mustStart(t, Options{Limit: 1000 * mib}, f)
	f.want(t, 900*mib, ample)
	f.change(func() { f.offHeap = 500 * mib })
	f.tick(1)
	f.want(t, 400*mib, -1)
	f.change(func() { f.offHeap = 505 * mib })
	f.tick(1)
	f.want(t, 400*mib, -1) // less than 2%
	f.change(func() {
		f.offHeap = 500 * mib
		f.files = tree{"proc/self/status": "RssAnon: 614400 kB\n"} // 600 MiB, 90 of others
	})
	f.pass(restTime)
	f.want(t, 310*mib, -1)
	if st := b.Stats(); st.Others != 90*mib || st.OffHeap != 500*mib || st.Headroom != 100*mib || st.Adjustments != 3 || st.Short != 0 {
		t.Errorf("%+v", st)
	}
	f.change(func() { f.offHeap = 2 * gib })
	f.tick(1)
	f.want(t, 10*mib, -1)
	if st := b.Stats(); st.Short == 0 {
		t.Errorf("%+v", st)
	}
	b.Stop()
	b.Stop()
	f.want(t, math.MaxInt64, 100)
	f.due = time.Time{}
	f.tick(1)
	if !f.due.IsZero() {
		t.Error("ticks go on")
	}
}

func TestThereIsOneBudget(t *testing.T) {
	f := newFake()
	b := mustStart(t, Options{}, f)
	if again, err := start(Options{}, newFake().system()); !errors.Is(err, errStarted) || again != nil {
		t.Errorf("a second budget: %v, %v", again, err)
	}
	if again, err := Start(nil); !errors.Is(err, errStarted) || again != nil {
		t.Errorf("a second budget: %v, %v", again, err)
	}
	if Running() != b {
		t.Error("the budget that runs is another one")
	}
	b.Stop()
	if Running() != nil {
		t.Error("a budget that was stopped runs")
	}
	if again := mustStart(t, Options{}, newFake()); Running() != again {
		t.Error("the second budget does not run")
	}
}

func TestStartWithoutALimit(t *testing.T) {
	f := newFake()
	f.physical = 0
	b, err := start(Options{}, f.system())
	if !errors.Is(err, ErrNoLimit) || b != nil || !strings.HasPrefix(err.Error(), "freehold: budget.Start: no memory limit found: set Options.Limit or FREEHOLD_MEMORY_LIMIT") {
		t.Errorf("%v, %v", b, err)
	}
	f.variables = map[string]string{pressure.Environment: "1GB"}
	if _, err := start(Options{}, f.system()); err == nil || err.Error() != `freehold: budget.Start: FREEHOLD_MEMORY_LIMIT: "1GB", want a size above 0 in B, KiB, MiB, GiB or TiB, such as 512MiB` {
		t.Error(err)
	}
	f.want(t, math.MaxInt64, 100)
	f.variables[pressure.Environment] = "1000MiB"
	mustStart(t, Options{}, f)
	f.want(t, 900*mib, ample)
}

// A limit of 1,000 is in bytes, and too small for any program.
func TestStartWithALimitThatIsOfNoUse(t *testing.T) {
	f := newFake()
	for source, o := range map[string]Options{pressure.Environment: {}, "Options.Limit": {Limit: minGoHeap - 1}} {
		f.variables = map[string]string{pressure.Environment: "8388607"}
		want := "freehold: budget.Start: " + source + " of 8.0MiB, want 8MiB or more, which Go's heap needs alone"
		if b, err := start(o, f.system()); b != nil || err == nil || err.Error() != want {
			t.Errorf("%v, %v, want %s", b, err, want)
		}
	}
	f.want(t, math.MaxInt64, 100)
	mustStart(t, Options{Limit: minGoHeap}, f).Stop()
	f.files = v2 // a cgroup's 1,000,000 bytes
	mustStart(t, Options{}, f)
}

func TestOptionsThatAreMistakes(t *testing.T) {
	tests := []struct {
		o    Options
		want string
	}{
		{Options{Limit: -1}, "Limit -1, want 0 or more"},
		{Options{Headroom: -1}, "Headroom -1, want 0 or more"},
		{Options{GoHeap: -1}, "GoHeap -1, want 0 or more"},
	}
	for _, tt := range tests {
		wantPanic(t, "freehold: budget.Start: Options."+tt.want, func() { Start(&tt.o) })
	}
	b := mustStart(t, Options{}, newFake())
	wantPanic(t, "freehold: Budget.OnPressure: f is nil", func() { b.OnPressure(0, nil) })
}

func TestHeadroom(t *testing.T) {
	tests := []struct {
		o     Options
		limit int64
		want  int64
	}{
		{Options{}, 1000, 100},
		{Options{}, 100 * gib, 512 * mib},
		{Options{Headroom: 7}, 100 * gib, 7},
		{Options{Headroom: 200}, 300, 150},
	}
	for _, tt := range tests {
		if got := tt.o.headroomOf(tt.limit); got != tt.want {
			t.Errorf("%+v of %d: %d, want %d", tt.o, tt.limit, got, tt.want)
		}
	}
}

func TestSettingsOfTheUserStay(t *testing.T) {
	tests := []struct {
		name          string
		variables     map[string]string
		limit         int64
		percent       int
		during, after setting
		report        string
	}{
		{"none", nil, math.MaxInt64, 100, setting{900 * mib, 10000}, setting{math.MaxInt64, 100}, "GOMEMLIMIT 900MiB, GOGC 10000 (Go's heap to 400MiB)"},
		{"GOMEMLIMIT", map[string]string{"GOMEMLIMIT": "2GiB"}, 2 * gib, 100, setting{2 * gib, 22500}, setting{2 * gib, 100}, "GOMEMLIMIT 2GiB (the program's own), GOGC 22500"},
		{"GOMEMLIMIT=off", map[string]string{"GOMEMLIMIT": "off"}, math.MaxInt64, 100, setting{math.MaxInt64, 22500}, setting{math.MaxInt64, 100}, "GOMEMLIMIT off (the program's own), GOGC 22500"},
		{"SetMemoryLimit", nil, 2 * gib, 100, setting{2 * gib, 22500}, setting{2 * gib, 100}, "GOMEMLIMIT 2GiB (the program's own), GOGC 22500"},
		{"GOGC", map[string]string{"GOGC": "100"}, math.MaxInt64, 100, setting{900 * mib, 100}, setting{math.MaxInt64, 100}, "GOMEMLIMIT 900MiB, GOGC 100 (the program's own)"},
		{"SetGCPercent", nil, math.MaxInt64, -1, setting{900 * mib, -1}, setting{math.MaxInt64, -1}, "GOMEMLIMIT 900MiB, GOGC off (the program's own)"},
		{"empty", map[string]string{"GOGC": "", "GOMEMLIMIT": ""}, math.MaxInt64, 100, setting{900 * mib, 10000}, setting{math.MaxInt64, 100}, "GOMEMLIMIT 900MiB, GOGC 10000 (Go's heap to 400MiB)"},
		{"both", map[string]string{"GOGC": "50", "GOMEMLIMIT": "1"}, 1, 50, setting{1, 50}, setting{1, 50}, "GOMEMLIMIT 1B (the program's own), GOGC 50 (the program's own)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			f.golang.live = 1 // so that GOGC for 900 MiB is that for Go's smallest goal
			f.variables = tt.variables
			f.golang.limit, f.golang.percent = tt.limit, tt.percent
			b := mustStart(t, Options{Limit: 1000 * mib}, f)
			f.tick(3)
			f.want(t, tt.during.limit, tt.during.percent)
			if s := b.String(); !strings.Contains(s, tt.report) {
				t.Errorf("%s, want %s", s, tt.report)
			}
			b.Stop()
			f.want(t, tt.after.limit, tt.after.percent)
		})
	}
}

// Outside of a container a process keeps the collector's pace, and gets a container's once it is
// moved into one.
func TestPaceWithoutAContainer(t *testing.T) {
	f := newFake()
	f.physical, f.golang.live = 16*gib, 100*mib
	mustStart(t, Options{}, f)
	f.want(t, 12*gib-512*mib, 100)
	f.change(func() {
		f.files = v2.With(app+"memory.max", "1048576000", pod+"memory.max", "max")
		f.golang.cycles, f.golang.live = 1, 4*mib
	})
	f.pass(30 * time.Second)
	f.want(t, 900*mib, ample)
}

// Go's heap is bounded while the settings change: the limit falls first, and rises last.
func TestSettingsChangeInOrder(t *testing.T) {
	f := newFake()
	b := mustStart(t, Options{Limit: 1000 * mib}, f)
	b.Stop()
	if want := []string{"limit", "percent", "percent", "limit"}; !slices.Equal(f.set, want) {
		t.Errorf("set %q, want %q", f.set, want)
	}
}

func TestSettingsThatTheProgramChangesLaterStay(t *testing.T) {
	f := newFake()
	f.physical = 64 * gib
	b := mustStart(t, Options{Limit: 1000 * mib}, f)
	f.change(func() { f.golang.percent = 70 })
	f.tick(1)
	f.want(t, 900*mib, 70)
	f.change(func() { f.golang.limit = 5 * gib; f.offHeap = 300 * mib })
	f.tick(2)
	f.want(t, 5*gib, 70)
	if st := b.Stats(); !st.UserGC || !st.UserLimit || st.Problem != problemUsersGC+"; "+problemUsersLimit {
		t.Errorf("%+v", st)
	}
	b.Stop()
	f.want(t, 5*gib, 70)
}

// The budget has read the settings, and the program changes them before the budget does.
func TestSettingsThatTheProgramChangesDuringATickStay(t *testing.T) {
	for _, user := range []int64{100 * mib, 950 * mib} { // below and above those of the budget
		for _, offHeap := range []int64{300 * mib, 0} { // which has the limit fall and rise
			f := newFake()
			s, change := f.system(), false
			s.offHeap = func() int64 { // read after the settings
				f.change(func() {
					if change {
						f.golang.limit, f.golang.percent = user, 70
					}
				})
				return locked(f, func() int64 { return f.offHeap })
			}
			f.offHeap = 150 * mib
			b, err := start(Options{Limit: 1000 * mib, GoHeap: 400 * mib}, s)
			if err != nil {
				t.Fatal(err)
			}
			f.change(func() { change, f.offHeap, f.golang.live = true, offHeap, 200*mib })
			b.tick()
			f.want(t, user, 70)
			if st := b.Stats(); !st.UserLimit || !st.UserGC || st.Problem != problemUsersLimit+"; "+problemUsersGC {
				t.Errorf("%+v", st)
			}
			f.change(func() { change = false })
			b.Stop()
			f.want(t, user, 70)
		}
	}
}

// What the program sets meanwhile stays, however often that is.
func TestSwap(t *testing.T) {
	value, program := 1, []int{7, 8, 9}
	set := func(n int) (before int) {
		if len(program) > 0 {
			value, program = program[0], program[1:]
		}
		before, value = value, n
		return before
	}
	if got := swap(set, 1, 2); got != 9 || value != 9 {
		t.Errorf("%d, returned %d, want what the program set last", value, got)
	}
	if got := swap(set, 9, 3); got != 3 || value != 3 {
		t.Errorf("%d, returned %d", value, got)
	}
}

func TestContainerIsResized(t *testing.T) {
	f := newFake()
	f.physical = 64 * gib
	set := func(max string) {
		f.change(func() { f.files = v2.With(app+"memory.max", max, app+"memory.current", "") })
	}
	set("1048576000")
	f.files = f.files.With(pod+"memory.max", "max")
	b := mustStart(t, Options{GoHeap: math.MaxInt64}, f)
	f.want(t, 900*mib, -1)
	for _, tt := range []struct {
		max    string
		limit  int64
		source string
		broken bool
	}{
		{"2097152000", 1800 * mib, "memory.max", false},
		{"524288000", 450 * mib, "memory.max", false},
		{"nonsense", 450 * mib, "memory.max", true},
		{cgroups.Unreadable, 450 * mib, "memory.max", true},
		{"524288000", 450 * mib, "memory.max", false},
		{"max", 48*gib - 512*mib, "3/4 of physical memory", false},
		{"1048576000", 900 * mib, "memory.max", false},
	} {
		f.change(func() {
			f.files = v2.With(app+"memory.max", tt.max, app+"memory.current", "", pod+"memory.max", "max")
		})
		f.pass((ticksPerSearch + 1) * restTime)
		f.want(t, tt.limit, -1)
		if st := b.Stats(); !strings.HasSuffix(st.Source, tt.source) || (st.Problem != "") != tt.broken {
			t.Errorf("%q: source %s, problem %q", tt.max, st.Source, st.Problem)
		}
	}
}

// A search that finds nothing leaves the limit as it is, and says why.
func TestLimitStaysWhenNoneIsFound(t *testing.T) {
	f := newFake()
	b := mustStart(t, Options{}, f)
	before := b.Stats()
	f.change(func() { f.physical = 0 })
	f.pass((ticksPerSearch + 1) * restTime)
	if st := b.Stats(); st.Limit != before.Limit || st.Source != before.Source || !strings.Contains(st.Problem, ErrNoLimit.Error()) {
		t.Errorf("%+v", st)
	}
}

// Who takes off-heap memory between two ticks has Go's limit fall, and waits while Go holds
// too much.
func TestGrowthMakesRoom(t *testing.T) {
	f := newFake()
	b := mustStart(t, Options{Limit: 1000 * mib}, f)
	if f.watermark != 25*mib {
		t.Errorf("watermark is %d, want a quarter of the headroom", f.watermark)
	}
	f.change(func() { f.offHeap = 300 * mib; f.golang.held = 600 * mib })
	f.passed()
	f.want(t, 600*mib, ample)
	if st := b.Stats(); st.Reclaims != 0 || f.watermark != 325*mib {
		t.Errorf("watermark is %d, %+v", f.watermark, st)
	}
	f.onReclaim = func() { f.golang.held = 50 * mib; f.clock = f.clock.Add(time.Hour) }
	for i := range int64(3) { // however lately the last reclaim was
		f.change(func() { f.offHeap += 30 * mib; f.golang.held = 700 * mib })
		f.passed()
		f.want(t, 570*mib-i*30*mib, ample)
		if g := f.read(); g.held != 50*mib {
			t.Error("the caller did not wait")
		}
	}
	b.Stop()
	f.passed() // a call that Stop has overtaken
	f.want(t, math.MaxInt64, 100)
	if f.watermark != 0 {
		t.Error("Stop has left the watermark")
	}
}

// Ticks are rare while nothing happens, and as frequent as ever when something does.
func TestTicksAreRareAtRest(t *testing.T) {
	f := newFake()
	b := mustStart(t, Options{Limit: 1000 * mib}, f) // a headroom of 100
	next := func(want time.Duration) {
		t.Helper()
		if got := locked(f, func() time.Duration { return f.due.Sub(f.clock) }); got != want {
			t.Errorf("the next tick is in %v, want %v", got, want)
		}
	}
	for _, tt := range []struct {
		offHeap int64 // beside 10 MiB that Go holds
		want    time.Duration
	}{{0, 25 * pressure.ReadTime}, {290, 19 * pressure.ReadTime}, {750, 4 * pressure.ReadTime}, {751, 4 * pressure.ReadTime}, {766, tickTime}, {995, tickTime}, {0, 25 * pressure.ReadTime}} {
		f.change(func() { f.offHeap = tt.offHeap * mib })
		f.tick(1)
		next(tt.want)
	}
	f.change(func() { f.golang.held = 900 * mib })
	f.tick(1)
	next(pressure.ReadTime) // nothing is wanted, and a headroom is left
	f.change(func() { f.golang.held = 940 * mib })
	f.tick(1)
	next(tickTime) // as it collects
	b.reclaims.wait()
	f.change(func() { f.golang.held = 10 * mib })
	f.tick(1)
	next(25 * pressure.ReadTime)
	if !f.cycle() {
		t.Error("the next collection calls for no tick")
	}
	next(tickTime)
	f.tick(1)
	next(25 * pressure.ReadTime)
	f.passed()
	next(tickTime) // off-heap memory grows
	b.Account()
	b.Stop()
	if f.cycle() {
		t.Error("a collection after Stop calls for a tick")
	}
}

// The growth that raises the level is told of, also if it is less than a part of the headroom.
func TestGrowthThatRaisesTheLevelIsATick(t *testing.T) {
	f := newFake()
	b := pressed(t, f, Options{})
	for _, tt := range []struct{ offHeap, want int64 }{{0, 25}, {820, 840}, {839, 840}, {841, 866}, {980, 990}, {991, 1016}} {
		f.hold(b, tt.offHeap*mib)
		if got := f.mark() / mib; got != tt.want {
			t.Errorf("with %d MiB the watermark is %d, want %d", tt.offHeap, got, tt.want)
		}
	}
}

// Objects that are allocated during a cycle are live in it. So Go's floor is computed from the
// fewest live bytes of the last four cycles.
func TestFloorIsOfTheLeastLive(t *testing.T) {
	f := newFake()
	f.offHeap, f.golang.cycles = 890*mib, 1
	b := mustStart(t, Options{Limit: 1000 * mib}, f)
	for _, tt := range []struct{ live, least int64 }{ // MiB, of a cycle each
		{100, 4}, {60, 4}, {90, 4}, {80, 60}, {80, 60}, {80, 80}, {20, 20}, {80, 20},
	} {
		f.change(func() { f.golang.cycles++; f.golang.live = tt.live * mib })
		f.tick(2) // the same cycle at two ticks
		floor := 2*mib + max(tt.least*mib/100*floorPercent, minGoHeap)
		if st := b.Stats(); st.Short != max(floor-10*mib, 0) {
			t.Errorf("%d live: %s short, want %s", tt.live, formatSize(st.Short), formatSize(floor-10*mib))
		}
	}
}

// If several cycles end between two ticks, a tick reads the last one, and old cycles are forgotten.
func TestFloorForgetsCyclesThatPassBetweenTicks(t *testing.T) {
	for cycles := range int64(9) {
		var l lives
		l.note(goFigures{cycles: 1, live: 1 * mib})
		for i := range int64(4) {
			l.note(goFigures{cycles: 1 + (i+1)*(cycles+1), live: 100 * mib})
		}
		if got := l.least(); got != 100*mib {
			t.Errorf("%d cycles at a time: the least live is %s", cycles+1, formatSize(got))
		}
	}
}

// A wait in vain ends, and lets off-heap memory grow by a part of the headroom. During the wait
// Go's limit is Go's share of the memory, and then it follows the memory that Go holds.
func TestGrowthDoesNotWaitInVainForever(t *testing.T) {
	f, b := waiting(t, 110*mib, 10*time.Millisecond, nothing)
	pressed := int64(0)
	f.change(func() {
		onReclaim := f.onReclaim
		f.onReclaim = func() { onReclaim(); pressed = f.golang.limit }
	})
	look := func(offHeap, held, mark int64) { // a tick that does not begin a reclaim of its own
		t.Helper()
		f.change(func() { f.offHeap, f.golang.held = offHeap*mib, held*mib })
		b.mu.Lock()
		b.update()
		b.mu.Unlock()
		if f.mark() != mark*mib {
			t.Errorf("with %d MiB the watermark is %s, want %d MiB", offHeap, formatSize(f.mark()), mark)
		}
	}
	const holds = 510*mib + 510*mib/slackShare
	f.waits(t, longWait, 50*time.Millisecond)
	if pressed != 400*mib {
		t.Errorf("Go's limit is %s during the wait", formatSize(pressed))
	}
	look(500, 510, 525)  // what was granted stays
	f.want(t, holds, -1) // as the wait was in vain
	f.change(func() { f.offHeap = 526 * mib })
	f.waits(t, shortWait, 50*time.Millisecond)
	if pressed != holds {
		t.Errorf("Go's limit is %s after a wait in vain", formatSize(pressed))
	}
	look(526, 510, 551)
	look(500, 510, 525) // memory that was freed is not granted
	f.change(func() { f.clock, f.offHeap = f.clock.Add(shortMultiple*2*longWait), 530*mib })
	f.waits(t, longWait, 50*time.Millisecond)
	look(530, 10, 555)
	look(540, 700, 555)
	look(560, 700, 560) // while Go holds too much, each growth asks
}

// writer is a function that is called for each line of its logger.
type writer func()

func (w writer) Write(b []byte) (int, error) { w(); return len(b), nil }
func (w writer) logger() *slog.Logger        { return slog.New(slog.NewTextHandler(w, nil)) }

// A Logger that panics, ends its goroutine or stops the budget leaves no budget and no goroutine.
func TestStartThatCannotReport(t *testing.T) {
	for name, fail := range map[string]writer{
		"panic": func() { panic("oh") },
		"exit":  func() { runtime.Goexit() },
		"stop":  func() { Running().Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.files = tree{machinePressure: "some total=0\n"}
				panicked := make(chan any)
				go func() {
					defer func() { panicked <- recover() }()
					if b, err := start(Options{Logger: fail.logger()}, f.system()); name != "stop" {
						t.Errorf("%v, %v", b, err)
					}
				}()
				if r := <-panicked; (r == "oh") != (name == "panic") {
					t.Errorf("panic %v", r)
				}
				f.want(t, math.MaxInt64, 100)
				if Running() != nil || f.cycle() || f.mark() != 0 {
					t.Errorf("left: budget %v, watermark %d", Running(), f.mark())
				}
				if b := mustStart(t, Options{}, newFake()); Running() != b {
					t.Error("a second budget does not run")
				}
			})
		})
	}
}

// Two problems are in one line too.
func TestProblemsAreInOneLine(t *testing.T) {
	f := newFake()
	f.files = v2.With(app+"memory.max", "x", pod+"memory.max", "y")
	b := mustStart(t, Options{}, f)
	const want = `/sys/fs/cgroup/pod/app/memory.max: "x", want a number of bytes above 0, or max; /sys/fs/cgroup/pod/memory.max: "y", `
	if s := b.String(); strings.Contains(s, "\n") || !strings.Contains(s, want) || !strings.HasPrefix(b.Stats().Problem, want) {
		t.Errorf("%q, want %q in it", s, want)
	}
}

func TestStartIsLogged(t *testing.T) {
	f := newFake()
	f.offHeap = 600 * mib
	var log bytes.Buffer
	b := mustStart(t, Options{Limit: 1000 * mib, Logger: slog.New(slog.NewJSONHandler(&log, nil))}, f)
	f.tick(2) // which log nothing
	want := "memory budget of 1000MiB from Options.Limit: headroom 100MiB, off-heap 600MiB, others 0B, Go 10MiB; GOMEMLIMIT 300MiB, GOGC off"
	if b.String() != want {
		t.Errorf("%v, want %s", b, want)
	}
	if s := log.String(); strings.Count(s, "\n") != 1 || !strings.Contains(s, `"msg":"freehold: memory budget","budget":{"Limit":1048576000,"Source":"Options.Limit",`) {
		t.Error(s)
	}
	if none := (*Budget)(nil); none.String() != "<nil>" {
		t.Error(none)
	}
	st := Stats{GoLimit: math.MaxInt64, GCPercent: 100, Short: 3 << 20, Pressure: Pressure{Level: Hard}, Problem: "a problem", Source: "a source"}
	if s, want := st.String(), "memory budget of 0B from a source: headroom 0B, off-heap 0B, others 0B, Go 0B; GOMEMLIMIT off, GOGC 100; 3MiB short; pressure hard; a problem"; s != want {
		t.Errorf("%s, want %s", s, want)
	}
}
