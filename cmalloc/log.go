// Log: LogValue of a Heap and its Stats.

package cmalloc

import (
	"log/slog"
	"slices"

	"github.com/freehold-go/freehold/internal/statlog"
)

// LogValue implements [slog.LogValuer]. It returns a group of the figures that the
// malloc in use reports: allocated, active, metadata, resident, mapped and retained.
func (st Stats) LogValue() slog.Value {
	return slog.GroupValue(slices.DeleteFunc(statlog.Group(st).Group(), func(a slog.Attr) bool { return a.Value.Int64() < 0 })...)
}

// LogValue implements [slog.LogValuer]. It returns the group of Stats, and costs as much.
func (h *Heap) LogValue() slog.Value { return statlog.Of(h, h.Stats) }
