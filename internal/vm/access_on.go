//go:build freehold_seams

package vm

const observed = true

// Accessed, unless it is nil, is called with each off-heap address that becomes a pointer, before
// that is used. It must not allocate: its caller may be pinned. For tests.
var Accessed func(addr uintptr)

func accessed(addr uintptr) {
	if Accessed != nil {
		Accessed(addr)
	}
}
