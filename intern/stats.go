// Stats: counts of strings and bytes.

package intern

import (
	"log/slog"

	"github.com/freehold-go/freehold/internal/statlog"
)

// Stats is a snapshot of [Strings] or [Shared].
type Stats struct {
	Name      string // Options.Name
	Len       int    // strings
	LiveBytes int    // in the strings
	IDs       int    // the most strings at any time so far; every ID is less than it
	Reserved  int    // bytes from the parent
}

// Stats returns the figures. It costs a few loads.
func (s *Strings) Stats() Stats { return s.store.stats(s.base.Name) }

func (s *store) stats(name string) Stats {
	return Stats{
		Name:      name,
		Len:       s.live(),
		LiveBytes: s.bytes,
		IDs:       int(s.ids.Load()),
		Reserved:  int(s.reserved.Load()),
	}
}

// LogValue implements [slog.LogValuer]. It returns a group of all figures.
func (st Stats) LogValue() slog.Value { return statlog.Group(st, "Name") }

// LogValue implements [slog.LogValuer]. It returns the group of Stats.
func (s *Strings) LogValue() slog.Value { return statlog.Of(s, s.Stats) }

// LogValue implements [slog.LogValuer]. It returns the group of Stats.
func (s *Shared) LogValue() slog.Value { return statlog.Of(s, s.Stats) }
