package epoch

import (
	"sync/atomic"
	"unsafe"
)

// needsFence reports that a later atomic load may overtake the store of set.
const needsFence = true

// set stores v. atomic.Store would be a locked instruction. The compiler keeps the order of stores
// and atomic operations, and the processor keeps the order of stores.
func set(w *atomic.Uint64, v uint64) { *(*uint64)(unsafe.Pointer(w)) = v }
