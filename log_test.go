package freehold_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// logLine returns what slog writes of a value.
func logLine(v any) string {
	var b strings.Builder
	slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
				return slog.Attr{}
			}
			return a
		},
	})).Info("", "v", v)
	return strings.TrimSpace(b.String())
}

func TestLogsShowFigures(t *testing.T) {
	own := alloctest.New(t)
	counter := freehold.NewTagged(own, "")
	counter.Free(freehold.Must(counter.Alloc(50, 8)))
	limit := freehold.NewLimit(counter, 1000)
	b := freehold.Must(limit.Alloc(30, 8))
	defer limit.Free(b)
	tagged := freehold.NewTagged(own, "logged")
	tagged.Free(freehold.Must(tagged.Alloc(20, 8)))
	const counts = "live=1 v.live_bytes=30 v.peak_bytes=50 v.allocs=2 v.frees=1"
	tests := []struct {
		value any
		want  string
	}{
		{counter, "v." + counts},
		{counter.Counts(), "v." + counts},
		{tagged, `v.tag=logged v.live=0 v.live_bytes=0 v.peak_bytes=20 v.allocs=1 v.frees=1`},
		{freehold.TagStats{Tag: "a/b", Counts: counter.Counts()}, "v.tag=a/b v." + counts},
		{(*freehold.Tagged)(nil), "v=<nil>"},
		{limit, "v.live_bytes=30 v.limit=1000"},
		{freehold.NewFallback(limit, plain{own}), "v.first.live_bytes=30 v.first.limit=1000 v.rest=freehold_test.plain"},
		{freehold.NewLocked(limit), "v.live_bytes=30 v.limit=1000"},
		{freehold.NewLocked(freehold.NewLocked(limit)), "v.live_bytes=30 v.limit=1000"},
		{freehold.NewLocked(plain{limit}), "v=freehold_test.plain"},
		{(*freehold.Limit)(nil), "v=<nil>"},
		{freehold.Stats{Name: "x", Live: 1, LiveBytes: 2, Large: 3, LargeBytes: 4, Active: 5, Resident: 6, Retained: 7, Metadata: 8, Committed: 9, SlowAllocs: 10, SlowFrees: 11, Refusals: 12, PurgedBytes: 13, Guarded: 14, GuardedEver: 15, GuardsSkipped: 16},
			"v.name=x v.live=1 v.live_bytes=2 v.large=3 v.large_bytes=4 v.active=5 v.resident=6 v.retained=7 v.metadata=8 v.committed=9" +
				" v.slow_allocs=10 v.slow_frees=11 v.refusals=12 v.purged_bytes=13 v.guarded=14 v.guarded_ever=15 v.guards_skipped=16"},
	}
	for _, tt := range tests {
		if got := logLine(tt.value); got != tt.want {
			t.Errorf("%T: %s, want %s", tt.value, got, tt.want)
		}
	}
}
