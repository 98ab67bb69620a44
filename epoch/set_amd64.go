package epoch

import (
	"sync/atomic"
	"unsafe"
)

// needsFence reports that a later atomic load may come before what set stores is visible.
const needsFence = true

// set stores v. Store would be a locked instruction. The compiler keeps the order of stores and atomic
// operations, which all change memory for it, and the processor that of stores.
func set(w *atomic.Uint64, v uint64) { *(*uint64)(unsafe.Pointer(w)) = v }
