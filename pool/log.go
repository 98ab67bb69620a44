// Log: what slog shows of pools.

package pool

import "log/slog"

// LogValue implements [slog.LogValuer]. It returns a group of block_size, live,
// live_bytes, retired, blocks, chunks, reserved, and max_blocks and limit if there are
// such limits.
func (st Stats) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.Int("block_size", st.BlockSize),
		slog.Int("live", st.Live),
		slog.Int("live_bytes", st.LiveBytes),
		slog.Int("retired", st.Retired),
		slog.Int("blocks", st.Blocks),
		slog.Int("chunks", st.Chunks),
		slog.Int("reserved", st.Reserved),
	}
	if st.MaxBlocks > 0 {
		attrs = append(attrs, slog.Int("max_blocks", st.MaxBlocks))
	}
	if st.MaxBytes > 0 {
		attrs = append(attrs, slog.Int("limit", st.MaxBytes))
	}
	return slog.GroupValue(attrs...)
}

// LogValue implements [slog.LogValuer]. It returns that of Stats, and costs as much.
func (b *Blocks) LogValue() slog.Value { return b.logValue("pool.Blocks.LogValue") }

// LogValue is [Blocks.LogValue].
func (p *Pool[T]) LogValue() slog.Value {
	if p == nil {
		return slog.StringValue("<nil>")
	}
	return p.blocks.logValue("pool.Pool.LogValue")
}

func (b *Blocks) logValue(call string) slog.Value {
	if b == nil {
		return slog.StringValue("<nil>")
	}
	return b.stats(call).LogValue()
}
