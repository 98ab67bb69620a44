package sqlite

// ForgetTrim makes the next trim return memory, even within a second of the last one.
func ForgetTrim() { trimmed.Store(0) }
