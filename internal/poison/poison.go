// Poison: unused memory inside the blocks that arenas and pools hold.
//
//	poisoned --Take--> in use --Leave--> poisoned
//
// Poisoned memory holds the fill byte, and Take looks for bytes that were overwritten. In
// builds with -asan the sanitizer makes it inaccessible instead.

// Package poison finds writes to unused memory. It is on if FREEHOLD_DEBUG asks for poison or
// quarantine, and in builds with -asan.
package poison

import (
	"bytes"
	"slices"

	"github.com/freehold-go/freehold/internal/asan"
	"github.com/freehold-go/freehold/internal/mode"
)

// Fill is the value of each poisoned byte.
const Fill = 0xDB

var on = asked()

func asked() bool {
	_, quarantine := mode.Quarantine()
	return quarantine || asan.Enabled
}

// On reports whether allocators that are made from now on poison their unused memory.
func On() bool { return on }

// Set changes what On reports, until restore is called. For tests.
func Set(to bool) (restore func()) {
	before := on
	on = to
	return func() { on = before }
}

// Checks reports whether an allocator finds accesses to its freed blocks in every build and mode.
// Package alloctest sets it.
var Checks = func(allocator any) bool { return false }

// Leave poisons b.
func Leave(b []byte) {
	if asan.Enabled {
		asan.Poison(b)
		return
	}
	FillBytes(b, Fill)
}

// Take ends the poisoning of b. It returns the index of the first byte that was written since
// Leave, or -1. With -asan it is always -1: the sanitizer has reported the write.
func Take(b []byte) int {
	if asan.Enabled {
		asan.Unpoison(b)
		return -1
	}
	return Other(b, Fill)
}

// FillBytes sets each byte of b to c.
func FillBytes(b []byte, c byte) {
	for n := copy(b, []byte{c}); n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// Other returns the index of the first byte of b that is not c, or -1.
func Other(b []byte, c byte) int {
	if len(b) > 0 && b[0] == c && bytes.Equal(b[1:], b[:len(b)-1]) {
		return -1
	}
	return slices.IndexFunc(b, func(x byte) bool { return x != c })
}
