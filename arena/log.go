// Log: LogValue of arenas and their Stats.

package arena

import (
	"log/slog"

	"github.com/freehold-go/freehold/internal/statlog"
)

// LogValue implements [slog.LogValuer]. It returns a group of live, live_bytes,
// reserved, chunks, and limit if there is one.
func (st Stats) LogValue() slog.Value { return statlog.Group(st, "Name") }

// LogValue implements [slog.LogValuer]. It returns the group of Stats. Only the arena's owner may
// log it, with a handler that reads values before the log call returns, as package slog's do.
func (a *Arena) LogValue() slog.Value { return statlog.Of(a, a.Stats) }

// LogValue implements [slog.LogValuer]. It returns a group of live, live_bytes,
// reserved, retired, spare, chunks, and limit if there is one.
func (st SharedStats) LogValue() slog.Value { return statlog.Group(st, "Name") }

// LogValue implements [slog.LogValuer]. It returns the group of Stats, and costs as much.
func (s *Shared) LogValue() slog.Value { return statlog.Of(s, s.Stats) }

// LogValue implements [slog.LogValuer]. It returns a group of idle, reserved and limit.
func (st RecyclerStats) LogValue() slog.Value { return statlog.Group(st) }

// LogValue implements [slog.LogValuer]. It returns the group of Stats.
func (r *Recycler) LogValue() slog.Value { return statlog.Of(r, r.Stats) }
