//go:build !amd64

package epoch

import "sync/atomic"

const needsFence = false

// set stores v.
func set(w *atomic.Uint64, v uint64) { w.Store(v) }
