// Log: what slog and fmt show of buffers.

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

// String returns what LogValue does, as text. It is not the data, unlike that of a bytes.Buffer:
// string(b.Bytes()) is.
func (b *Buffer) String() string { return "buffer.Buffer " + b.LogValue().String() }

// LogValue implements [slog.LogValuer]. It returns a group of records, their number,
// and buffer, as [Buffer.LogValue] has it.
func (r *Records) LogValue() slog.Value {
	if r == nil || r.b == nil {
		return slog.StringValue("<nil>")
	}
	return slog.GroupValue(slog.Int("records", r.Len()), slog.Attr{Key: "buffer", Value: r.b.LogValue()})
}
