// Log: what slog shows of arenas.

package arena

import "log/slog"

// LogValue implements [slog.LogValuer]. It returns a group of live, live_bytes,
// reserved, chunks, and limit if there is one.
func (st Stats) LogValue() slog.Value {
	return withLimit(st.MaxBytes,
		slog.Int("live", st.Live), slog.Int("live_bytes", st.LiveBytes),
		slog.Int("reserved", st.Reserved), slog.Int("chunks", st.Chunks))
}

// LogValue implements [slog.LogValuer]. It returns that of Stats. Only the arena's
// owner may log it, with a handler that reads values before the log call returns, as
// those of package slog do.
func (a *Arena) LogValue() slog.Value {
	if a == nil {
		return slog.StringValue("<nil>")
	}
	return a.Stats().LogValue()
}

// LogValue implements [slog.LogValuer]. It returns a group of live, live_bytes,
// reserved, retired, spare, chunks, and limit if there is one.
func (st SharedStats) LogValue() slog.Value {
	return withLimit(st.MaxBytes,
		slog.Int("live", st.Live), slog.Int("live_bytes", st.LiveBytes),
		slog.Int("reserved", st.Reserved), slog.Int("retired", st.Retired), slog.Int("spare", st.Spare),
		slog.Int("chunks", st.Chunks))
}

// LogValue implements [slog.LogValuer]. It returns that of Stats, and costs as much.
func (s *Shared) LogValue() slog.Value {
	if s == nil {
		return slog.StringValue("<nil>")
	}
	return s.Stats().LogValue()
}

// LogValue implements [slog.LogValuer]. It returns a group of idle, reserved and limit.
func (st RecyclerStats) LogValue() slog.Value {
	return withLimit(st.MaxBytes, slog.Int("idle", st.Idle), slog.Int("reserved", st.Reserved))
}

// LogValue implements [slog.LogValuer]. It returns that of Stats.
func (r *Recycler) LogValue() slog.Value {
	if r == nil {
		return slog.StringValue("<nil>")
	}
	return r.Stats().LogValue()
}

func withLimit(maxBytes int, attrs ...slog.Attr) slog.Value {
	if maxBytes > 0 {
		attrs = append(attrs, slog.Int("limit", maxBytes))
	}
	return slog.GroupValue(attrs...)
}
