// Go pointers: whether a word is an address in the Go heap.

//go:build !freehold_portable

package watch

import _ "unsafe" // for linkname

func canTellGoPointers() error { return nil }

// isGoPointer reports whether word is an address in the Go heap: in an object, live or
// freed, or in a goroutine's stack. Any word will do. In builds where blocks are Go memory,
// addresses in blocks are such addresses too.
func isGoPointer(word uintptr) bool {
	return word != clobberDead && !verifyNotInHeapPtr(word)
}

// clobberDead is a pattern that the runtime takes for a bad pointer too.
const clobberDead = uintptr(0xdeaddead | 0xdeaddead<<((^uintptr(0)>>63)*32))

// verifyNotInHeapPtr is what reflect asks before it makes a pointer of a word. It searches
// the runtime's table of spans, and never fails.
//
//go:linkname verifyNotInHeapPtr reflect.verifyNotInHeapPtr
func verifyNotInHeapPtr(word uintptr) bool
