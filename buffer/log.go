// Log: what slog shows of buffers.

package buffer

import "log/slog"

// LogValue implements [slog.LogValuer]. It returns a group of len, cap and in_file, and
// closed=true after Close. It only reads.
func (b *Buffer) LogValue() slog.Value {
	switch {
	case b == nil:
		return slog.StringValue("<nil>")
	case b.closed:
		return slog.GroupValue(slog.Bool("closed", true))
	}
	return slog.GroupValue(slog.Int("len", b.Len()), slog.Int("cap", b.Cap()), slog.Bool("in_file", b.InFile()))
}

// LogValue implements [slog.LogValuer]. It returns a group of records, their number,
// and buffer, as [Buffer.LogValue] has it.
func (r *Records) LogValue() slog.Value {
	if r == nil || r.b == nil {
		return slog.StringValue("<nil>")
	}
	return slog.GroupValue(slog.Int("records", r.Len()), slog.Attr{Key: "buffer", Value: r.b.LogValue()})
}
