package pool_test

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/pool"
)

func TestLogsShowFigures(t *testing.T) {
	b := pool.NewBlocks(alloctest.New(t), 40, 8, nil)
	defer b.Close()
	block, err := b.Alloc(40, 8)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Free(block)
	p := pool.New[[5]int64](alloctest.New(t), nil)
	defer p.Close()
	v, err := p.Get()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Put(v)
	figures := func(st pool.Stats) string {
		return fmt.Sprintf("[block_size=40 live=1 live_bytes=40 retired=0 blocks=%d chunks=1 reserved=%d]", st.Blocks, st.Reserved)
	}
	tests := []struct {
		value slog.LogValuer
		want  string
	}{
		{b, figures(b.Stats())},
		{p, figures(p.Stats())},
		{pool.Stats{BlockSize: 1, Live: 2, LiveBytes: 3, Retired: 4, Blocks: 5, MaxBlocks: 6, Chunks: 7, Reserved: 8, MaxBytes: 9},
			"[block_size=1 live=2 live_bytes=3 retired=4 blocks=5 chunks=7 reserved=8 max_blocks=6 limit=9]"},
		{(*pool.Blocks)(nil), "<nil>"},
		{(*pool.Pool[int])(nil), "<nil>"},
	}
	for _, tt := range tests {
		if got := tt.value.LogValue().String(); got != tt.want {
			t.Errorf("%T: %s, want %s", tt.value, got, tt.want)
		}
	}
	for call, log := range map[string]func(){
		"pool.Blocks.LogValue": func() { new(pool.Blocks).LogValue() },
		"pool.Pool.LogValue":   func() { new(pool.Pool[int]).LogValue() },
	} {
		func() {
			defer func() {
				if got, want := fmt.Sprint(recover()), "freehold: "+call+": zero value: pool.New makes a Pool, pool.NewBlocks makes Blocks"; got != want {
					t.Errorf("panic %q, want %q", got, want)
				}
			}()
			log()
		}()
	}
}
