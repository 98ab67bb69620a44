// Log: what slog shows of C's heap.

package cmalloc

import "log/slog"

// LogValue implements [slog.LogValuer]. It returns a group of the figures that the
// malloc in use reports: allocated, active, metadata, resident, mapped and retained.
func (st Stats) LogValue() slog.Value {
	var attrs []slog.Attr
	for _, f := range []struct {
		name  string
		bytes int
	}{
		{"allocated", st.Allocated}, {"active", st.Active}, {"metadata", st.Metadata},
		{"resident", st.Resident}, {"mapped", st.Mapped}, {"retained", st.Retained},
	} {
		if f.bytes >= 0 {
			attrs = append(attrs, slog.Int(f.name, f.bytes))
		}
	}
	return slog.GroupValue(attrs...)
}

// LogValue implements [slog.LogValuer]. It returns that of Stats, and costs as much.
func (h *Heap) LogValue() slog.Value {
	if h == nil {
		return slog.StringValue("<nil>")
	}
	return h.Stats().LogValue()
}
