// Log: LogValue of pools and their Stats.

package pool

import (
	"log/slog"

	"github.com/freehold-go/freehold/internal/statlog"
)

// LogValue implements [slog.LogValuer]. It returns a group of block_size, live, live_bytes,
// retired, blocks, chunks, reserved, and of max_blocks and limit if they are set.
func (st Stats) LogValue() slog.Value { return statlog.Group(st, "Name") }

// LogValue implements [slog.LogValuer]. It returns the group of Stats, and costs as much.
func (b *Blocks) LogValue() slog.Value {
	return statlog.Of(b, func() Stats { return b.stats("pool.Blocks.LogValue") })
}

// LogValue is [Blocks.LogValue].
func (p *Pool[T]) LogValue() slog.Value {
	return statlog.Of(p, func() Stats { return p.blocks.stats("pool.Pool.LogValue") })
}
