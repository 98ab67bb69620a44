package arena_test

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/arena"
)

func TestLogsShowFigures(t *testing.T) {
	a := arena.New(alloctest.New(t), &arena.Options{ChunkBytes: 1000, MaxBytes: 5000})
	defer a.Close()
	s := arena.NewShared(alloctest.New(t), nil)
	defer s.Close()
	for range 2 {
		if _, err := a.Alloc(100, 1); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Alloc(100, 1); err != nil {
			t.Fatal(err)
		}
	}
	r := arena.NewRecycler(alloctest.New(t), &arena.RecyclerOptions{Decay: -1}) // no tick closes what is idle
	defer r.Close()
	used, err := r.Get(1)
	if err != nil {
		t.Fatal(err)
	}
	r.Put(used)
	shared, idle := s.Stats(), r.Stats()
	tests := []struct {
		value slog.LogValuer
		want  string
	}{
		{a, "[live=2 live_bytes=200 reserved=1000 chunks=1 limit=5000]"},
		{a.Stats(), "[live=2 live_bytes=200 reserved=1000 chunks=1 limit=5000]"},
		{s, fmt.Sprintf("[live=2 live_bytes=200 reserved=%d retired=0 spare=%d chunks=%d]", shared.Reserved, shared.Spare, shared.Chunks)},
		{r, fmt.Sprintf("[idle=1 reserved=%d limit=%d]", idle.Reserved, idle.MaxBytes)},
		{arena.Stats{Live: 1}, "[live=1 live_bytes=0 reserved=0 chunks=0]"},
		{arena.SharedStats{Live: 1, LiveBytes: 2, Reserved: 3, Retired: 4, Spare: 5, Chunks: 6, MaxBytes: 7},
			"[live=1 live_bytes=2 reserved=3 retired=4 spare=5 chunks=6 limit=7]"},
		{(*arena.Arena)(nil), "<nil>"},
		{(*arena.Shared)(nil), "<nil>"},
		{(*arena.Recycler)(nil), "<nil>"},
	}
	for _, tt := range tests {
		if got := tt.value.LogValue().String(); got != tt.want {
			t.Errorf("%T: %s, want %s", tt.value, got, tt.want)
		}
	}
}
