// Stats: counts of elements and bytes.

package vector

import (
	"log/slog"

	"github.com/freehold-go/freehold/internal/statlog"
)

// Stats is a snapshot of a [Vector] or a [Chunked].
type Stats struct {
	Name     string // Options.Name
	Len      int    // elements
	Cap      int    // capacity in elements
	Reserved int    // bytes from the parent
}

// LogValue implements [slog.LogValuer]. It returns a group of all figures.
func (st Stats) LogValue() slog.Value { return statlog.Group(st, "Name") }
