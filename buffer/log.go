// Log: a buffer as slog and fmt show it.

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

// String returns the text of LogValue. It does not return the data as bytes.Buffer's String does;
// use string(b.Bytes()) for that.
func (b *Buffer) String() string { return "buffer.Buffer " + b.LogValue().String() }

// LogValue implements [slog.LogValuer]. It returns a group of records, their number, and buffer,
// the [Buffer.LogValue].
func (r *Records) LogValue() slog.Value {
	if r == nil || r.b == nil {
		return slog.StringValue("<nil>")
	}
	return slog.GroupValue(slog.Int("records", r.Len()), slog.Attr{Key: "buffer", Value: r.b.LogValue()})
}
