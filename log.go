// Log: what slog shows of statistics and wrappers.

package freehold

import (
	"fmt"
	"log/slog"

	"github.com/freehold-go/freehold/internal/statlog"
)

// LogValue implements [slog.LogValuer]. It returns a group of all figures but Classes,
// in snake case: name, live, live_bytes and so on. The limit is left out if there is
// none.
func (st Stats) LogValue() slog.Value { return statlog.Group(st) }

// LogValue implements [slog.LogValuer]. It returns a group of live, live_bytes,
// peak_bytes, allocs and frees.
func (c Counts) LogValue() slog.Value { return statlog.Group(c) }

// LogValue implements [slog.LogValuer]. It returns that of Counts, with the tag, if there is one, before it.
func (t *Tagged) LogValue() slog.Value {
	if t == nil || t.account == nil {
		return slog.StringValue("<nil>")
	}
	return TagStats{t.tag, t.Counts()}.LogValue()
}

// LogValue implements [slog.LogValuer]. It returns that of Counts, with the tag before it.
func (st TagStats) LogValue() slog.Value { return statlog.Group(st) }

// LogValue implements [slog.LogValuer]. It returns a group of live_bytes and limit:
// Used and MaxBytes.
func (l *Limit) LogValue() slog.Value {
	if l == nil {
		return slog.StringValue("<nil>")
	}
	return slog.GroupValue(slog.Int("live_bytes", l.Used()), slog.Int("limit", l.MaxBytes()))
}

// LogValue implements [slog.LogValuer]. It returns a group of first and rest, the two
// allocators. One that is no LogValuer shows as its type.
func (f *fallback) LogValue() slog.Value {
	return slog.GroupValue(slog.Attr{Key: "first", Value: logged(f.first)}, slog.Attr{Key: "rest", Value: logged(f.rest)})
}

// LogValue implements [slog.LogValuer]. It returns that of the locked allocator, read
// under the lock, or its type if it is no LogValuer.
func (l *locked) LogValue() slog.Value {
	l.mu.Lock()
	defer l.mu.Unlock()
	return logged(l.next)
}

// logged returns what a log shows of an allocator: never its fields, which may be off-heap
// or in use by other goroutines.
func logged(a Allocator) slog.Value {
	if v, ok := a.(slog.LogValuer); ok {
		return v.LogValue().Resolve()
	}
	return slog.StringValue(fmt.Sprintf("%T", a))
}
