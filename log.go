// Log: what slog shows of statistics and wrappers.

package freehold

import (
	"fmt"
	"log/slog"
)

// LogValue implements [slog.LogValuer]. It returns a group of all figures but Classes,
// in snake case: name, live, live_bytes and so on. The limit is left out if there is
// none.
func (st Stats) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("name", st.Name),
		slog.Int("live", st.Live),
		slog.Int("live_bytes", st.LiveBytes),
		slog.Int("large", st.Large),
		slog.Int("large_bytes", st.LargeBytes),
		slog.Int("active", st.Active),
		slog.Int("resident", st.Resident),
		slog.Int("retained", st.Retained),
		slog.Int("metadata", st.Metadata),
		slog.Int("committed", st.Committed),
	}
	if st.MaxBytes > 0 {
		attrs = append(attrs, slog.Int("limit", st.MaxBytes))
	}
	return slog.GroupValue(append(attrs,
		slog.Uint64("slow_allocs", st.SlowAllocs),
		slog.Uint64("slow_frees", st.SlowFrees),
		slog.Uint64("refusals", st.Refusals),
		slog.Uint64("purged_bytes", st.PurgedBytes),
	)...)
}

// LogValue implements [slog.LogValuer]. It returns a group of live, live_bytes,
// peak_bytes, allocs and frees.
func (c Counts) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int("live", c.Live),
		slog.Int("live_bytes", c.LiveBytes),
		slog.Int("peak_bytes", c.PeakBytes),
		slog.Uint64("allocs", c.Allocs),
		slog.Uint64("frees", c.Frees),
	)
}

// LogValue implements [slog.LogValuer]. It returns that of Counts.
func (c *Counter) LogValue() slog.Value {
	if c == nil {
		return slog.StringValue("<nil>")
	}
	return c.Counts().LogValue()
}

// LogValue implements [slog.LogValuer]. It returns that of Counts, with the tag before it.
func (t *Tagged) LogValue() slog.Value {
	if t == nil || t.account == nil {
		return slog.StringValue("<nil>")
	}
	return TagStats{t.tag, t.Counts()}.LogValue()
}

// LogValue implements [slog.LogValuer]. It returns that of Counts, with the tag before it.
func (st TagStats) LogValue() slog.Value {
	return slog.GroupValue(append([]slog.Attr{slog.String("tag", st.Tag)}, st.Counts.LogValue().Group()...)...)
}

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
func (f *Fallback) LogValue() slog.Value {
	if f == nil {
		return slog.StringValue("<nil>")
	}
	return slog.GroupValue(slog.Attr{Key: "first", Value: logged(f.first)}, slog.Attr{Key: "rest", Value: logged(f.rest)})
}

// LogValue implements [slog.LogValuer]. It returns that of the locked allocator, read
// under the lock, or its type if it is no LogValuer.
func (l *Locked) LogValue() slog.Value {
	if l == nil {
		return slog.StringValue("<nil>")
	}
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
