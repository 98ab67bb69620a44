// Log: what slog shows of pools.

package pool

import (
	"log/slog"

	"github.com/freehold-go/freehold/internal/statlog"
)

// LogValue implements [slog.LogValuer]. It returns a group of block_size, live,
// live_bytes, retired, blocks, chunks, reserved, and max_blocks and limit if there are
// such limits.
func (st Stats) LogValue() slog.Value { return statlog.Group(st, "Name") }

// LogValue implements [slog.LogValuer]. It returns that of Stats, and costs as much.
func (b *Blocks) LogValue() slog.Value {
	return statlog.Of(b, func() Stats { return b.stats("pool.Blocks.LogValue") })
}

// LogValue is [Blocks.LogValue].
func (p *Pool[T]) LogValue() slog.Value {
	return statlog.Of(p, func() Stats { return p.blocks.stats("pool.Pool.LogValue") })
}
