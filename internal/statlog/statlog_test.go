package statlog

import (
	"log/slog"
	"testing"
)

type level int

func (level) String() string { return "high" }

type pressure struct {
	Level  level
	Wanted int64
}

type Counts struct{ Live, LiveBytes int }

func (c Counts) LogValue() slog.Value { return Group(c) }

type stats struct {
	Name string
	Counts
	IDs, GCPercent int
	UserGC         bool
	Pressure       pressure
	Above          Counts
	Problem        string
	MaxBlocks      int
	MaxBytes       int
	Moved          uint64
	Classes        []int
}

func (st stats) LogValue() slog.Value { return Group(st, "Moved") }

func TestGroup(t *testing.T) {
	zero := "[live=0 live_bytes=0 ids=0 gc_percent=0 user_gc=false pressure=high wanted=0]"
	if got := (stats{}).LogValue().String(); got != zero {
		t.Errorf("%s, want %s", got, zero)
	}
	full := stats{"a", Counts{1, 2}, 3, -1, true, pressure{1, 4}, Counts{5, 6}, "p", 7, 8, 9, []int{10}}
	want := "[name=a live=1 live_bytes=2 ids=3 gc_percent=-1 user_gc=true pressure=high wanted=4 above={5 6} problem=p max_blocks=7 limit=8]"
	if got := full.LogValue().String(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := Of(&full, func() stats { return full }).Group(); len(got) != 12 || got[3].Value.Kind() != slog.KindInt64 || got[5].Value.Kind() != slog.KindBool {
		t.Errorf("%v", got)
	}
	if got := Of((*stats)(nil), func() stats { panic("called") }).String(); got != "<nil>" {
		t.Errorf("of nil: %s", got)
	}
}
