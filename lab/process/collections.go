package process

import "runtime/debug"

// Collections returns how many collections Go's collector has finished.
func Collections() int64 {
	var s debug.GCStats
	debug.ReadGCStats(&s)
	return s.NumGC
}
