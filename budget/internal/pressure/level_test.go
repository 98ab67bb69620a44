package pressure

import (
	"fmt"
	"testing"
	"time"

	"github.com/freehold-go/freehold/internal/sysmem"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

func TestOf(t *testing.T) {
	// Soft begins at 850 MiB and hard at 1000. A level stays down to 31 MiB less.
	const room = 1000 * mib
	slack := int64(room) / HysteresisShare
	tests := []struct {
		needed           int64 // MiB
		before, signaled Level
		want             Level
		wanted           int64
	}{
		{200, Calm, Calm, Calm, 0},
		{850, Calm, Calm, Calm, 0},
		{851, Calm, Calm, Soft, 1*mib + slack},
		{851, Soft, Calm, Soft, 1*mib + slack},
		{840, Soft, Calm, Soft, slack}, // not down to calm yet
		{840, Hard, Calm, Soft, slack},
		{818, Soft, Calm, Calm, 0},
		{1000, Calm, Calm, Soft, 150*mib + slack},
		{1001, Calm, Calm, Hard, 151*mib + slack},
		{1001, Soft, Calm, Hard, 151*mib + slack},
		{990, Hard, Calm, Hard, 140*mib + slack},
		{968, Hard, Calm, Soft, 118*mib + slack},
		{5200, Calm, Calm, Hard, 4350*mib + slack},
		{200, Calm, Soft, Soft, slack},
		{200, Soft, Hard, Hard, slack},
		{1001, Calm, Soft, Hard, 151*mib + slack},
		{900, Calm, Hard, Hard, 50*mib + slack},
	}
	for _, tt := range tests {
		if got := Of(tt.needed*mib, room, tt.before, tt.signaled); got != (State{tt.want, tt.wanted}) {
			t.Errorf("%d MiB after %v, signaled %v: %+v, want %v %d", tt.needed, tt.before, tt.signaled, got, tt.want, tt.wanted)
		}
	}
}

// The level rises with the byte after Rise, and not before.
func TestRise(t *testing.T) {
	const room = 1000 * mib
	for _, needed := range []int64{0, 840 * mib, 990 * mib} {
		for _, from := range []Level{Calm, Soft} {
			level := func(needed int64) Level { return Of(needed, room, from, Calm).Level }
			if at := needed + Rise(needed, room, from); level(at) > from || level(at+1) <= from {
				t.Errorf("from %v at %d: %v at %d, and %v after it", from, needed, level(at), at, level(at+1))
			}
		}
	}
}

func TestLevelsHaveNames(t *testing.T) {
	for l, want := range map[Level]string{Calm: "calm", Soft: "soft", Hard: "hard", -1: "calm", 9: "hard"} {
		if got := l.String(); got != want {
			t.Errorf("%d: %s, want %s", int(l), got, want)
		}
	}
}

func TestSignalsEnd(t *testing.T) {
	var s signals
	now := time.Unix(1e9, 0)
	want := func(l Level) {
		t.Helper()
		if got := s.at(now); got != l {
			t.Errorf("level is %v, want %v", got, l)
		}
	}
	want(Calm)
	s.raise(Hard, now)
	want(Hard)
	now = now.Add(SignalTime - 1)
	want(Hard)
	s.raise(Soft, now) // while Hard holds
	want(Hard)
	now = now.Add(1) // and it does not hold for longer
	want(Soft)
	now = now.Add(SignalTime)
	want(Calm)
	s.raise(Soft, now)
	want(Soft)
	s.raise(Hard, now)
	want(Hard)
	now = now.Add(SignalTime)
	want(Calm)
}

func TestStall(t *testing.T) {
	tests := []struct {
		name  string
		looks [][2]time.Duration // after the first look, and the total
		fired []bool
	}{
		{"nothing", [][2]time.Duration{{0, 5 * time.Second}, {time.Second, 5 * time.Second}}, []bool{false, false}},
		{"enough", [][2]time.Duration{{0, 0}, {time.Second, stallTime}, {2 * time.Second, stallTime}}, []bool{false, true, false}},
		{"by parts", [][2]time.Duration{{0, 0}, {1 * time.Second, stallTime / 2}, {2 * time.Second, stallTime}}, []bool{false, false, true}},
		{"too slowly", [][2]time.Duration{{0, 0}, {stallWindow, stallTime - 1}, {2 * stallWindow, 2*stallTime - 2}}, []bool{false, false, false}},
		{"a look too late", [][2]time.Duration{{0, 0}, {stallWindow + 1, stallTime}}, []bool{false, false}},
		{"enough of a late look", [][2]time.Duration{{0, 0}, {2 * stallWindow, 2 * stallTime}}, []bool{false, true}},
		{"a look of long ago", [][2]time.Duration{{0, 0}, {2*stallWindow + 1, stallWindow}}, []bool{false, false}},
		{"another clock", [][2]time.Duration{{0, 0}, {-time.Hour, stallTime}, {-time.Hour + time.Second, 2 * stallTime}}, []bool{false, false, true}},
		{"another file", [][2]time.Duration{{0, 9 * time.Second}, {1, 0}, {2, stallTime}}, []bool{false, false, true}},
	}
	for _, tt := range tests {
		var s stall
		for i, look := range tt.looks {
			if fired := s.observe(time.Unix(1e9, 0).Add(look[0]), look[1]); fired != tt.fired[i] {
				t.Errorf("%s: look %d: %t", tt.name, i, fired)
			}
		}
	}
}

func TestStallTotal(t *testing.T) {
	tests := []struct {
		text string
		want time.Duration
		ok   bool
	}{
		{"some avg10=0.00 avg60=0.00 avg300=0.00 total=707001525\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n", 707001525 * time.Microsecond, true},
		{"some total=7", 7 * time.Microsecond, true},
		{"full total=7", 0, false},
		{"some avg10=0.00\n", 0, false},
		{"some total=-7\n", 0, false},
		{"some total=9223372036854775807\n", 0, false},
		{"", 0, false},
		{unreadable, 0, false},
	}
	for _, tt := range tests {
		got, ok := stallTotal(tree{machinePressure: tt.text}, machinePressure)
		if ok != tt.ok || ok && got != tt.want {
			t.Errorf("%q: %v, %t", tt.text, got, ok)
		}
	}
}

func TestPressureFile(t *testing.T) {
	const psi = "some total=1\n"
	tests := []struct {
		files tree
		want  string
	}{
		{tree{}, ""},
		{v2, ""},
		{v2.With(app+"memory.pressure", psi, pod+"memory.pressure", psi, machinePressure, psi), app + "memory.pressure"},
		{v2.With(pod+"memory.pressure", psi, machinePressure, psi), machinePressure}, // the parent is not the process's own
		{v2.With(app+"memory.pressure", "?", machinePressure, psi), machinePressure},
		{v1.With(machinePressure, psi), machinePressure},
		{v1.With(v1group+"memory.pressure", psi, machinePressure, psi), machinePressure}, // version 1 has no such file of the kernel's
		{v1.With(machinePressure, unreadable), ""},
	}
	for i, tt := range tests {
		if got := (Machine{Files: tt.files}).pressureFile(""); got != tt.want {
			t.Errorf("%d: %q, want %q", i, got, tt.want)
		}
	}
}

func TestEventsOfACgroup(t *testing.T) {
	now := time.Unix(1e9, 0)
	tests := []struct {
		name, before, after string
		full                bool
		want                Level
	}{
		{"none", "low 0\nhigh 5\nmax 7\noom 1\noom_kill 1\n", "low 9\nhigh 5\nmax 7\noom 1\noom_kill 1\n", true, Calm},
		{"high", "high 5\n", "high 6\n", true, Hard},
		{"max", "max 5\n", "max 6\n", true, Hard},
		{"max, by page cache", "max 5\n", "max 6\n", false, Calm},
		{"oom", "oom 0\n", "oom 1\n", false, Hard},
		{"a kill", "oom_kill 0\n", "oom_kill 1\n", false, Hard},
		{"malformed", "max 5\n", "max -\n", true, Calm},
		{"a file that appears", "", "high 0\n", true, Calm},
		{"a file that appears with events of before", "", "high 7\noom 7\noom_kill 7\n", true, Calm},
		{"well-formed again", "oom x\n", "oom 7\n", true, Calm},
		{"a file that disappears", "max 5\n", "", true, Calm},
	}
	own := foundLimit{group: &sysmem.Level{Dir: "cg", V2: true}}
	for _, tt := range tests {
		var s signals
		s.observeEvents(tree{"cg/memory.events": tt.before}, own, tt.full, now)
		if got := s.at(now); got != Calm {
			t.Errorf("%s: %v at the first look", tt.name, got)
		}
		s.observeEvents(tree{"cg/memory.events": tt.after}, own, tt.full, now)
		if got := s.at(now); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	for name, then := range map[string]foundLimit{
		"a cgroup of version 1": {group: &sysmem.Level{Dir: "cg"}},
		"another cgroup":        {group: &sysmem.Level{Dir: "other", V2: true}},
		"no cgroup":             {},
	} {
		var s signals
		for i, l := range []foundLimit{own, then, then} {
			s.observeEvents(tree{"cg/memory.events": fmt.Sprintln("max", i), "other/memory.events": "max 5\n"}, l, true, now)
		}
		if got := s.at(now); got != Calm {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Events before the start do not count for a cgroup that is mounted at the root either.
func TestEventsOfACgroupAtTheRoot(t *testing.T) {
	files := v2.With(mounts, "31 24 0:27 /pod/app / rw - cgroup2 cgroup2 rw\n", "memory.max", "300000", "memory.events", "max 5\n")
	l, err := Machine{Files: files}.groupLimit(gib, nil)
	if err != nil || l.source != "/memory.max" {
		t.Errorf("%+v, %v", l, err)
	}
	var s signals
	now := time.Unix(1e9, 0)
	s.observeEvents(files, l, true, now)
	if got := s.at(now); got != Calm {
		t.Errorf("%v", got)
	}
	s.observeEvents(files.With("memory.events", "max 6\n"), l, true, now)
	if got := s.at(now); got != Hard {
		t.Errorf("%v after one more", got)
	}
}
