//go:build freehold_seams

package vm

const observed = true

// Accessed, unless nil, is called with each off-heap address that becomes a pointer, before the
// pointer is used. It must not allocate: its caller may be pinned. For tests.
var Accessed func(addr uintptr)

func accessed(addr uintptr) {
	if Accessed != nil {
		Accessed(addr)
	}
}
