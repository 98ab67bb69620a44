// Package arg checks the arguments of exported calls. Its panics read:
//
//	freehold: NewLimit: maxBytes -1, want 0 or more
//
// The call is named as a user writes it: package.Func or Type.Method, as in
// pool.NewBlocks, Heap.Free or arena.Arena.Reset. The checks are inlined.
package arg

import (
	"fmt"
	"strings"
)

// Range panics unless min <= got <= max.
func Range(call, name string, got, min, max int) {
	if got < min || got > max {
		outOfRange(call, name, got, min, max)
	}
}

func outOfRange(call, name string, got, min, max int) {
	switch {
	case min < max:
		Panicf(call, "%s %d, want %d to %d", name, got, min, max)
	case min == max:
		Panicf(call, "%s %d, want %d", name, got, min)
	default:
		Panicf(call, "%s %d, and none is valid: it is empty", name, got)
	}
}

// AtLeast panics unless got is min or more.
func AtLeast(call, name string, got, min int) {
	if got < min {
		Panicf(call, "%s %d, want %d or more", name, got, min)
	}
}

// Align panics unless align is a power of two.
func Align(call string, align int) {
	if align <= 0 || align&(align-1) != 0 {
		Panicf(call, "alignment %d, want a power of two", align)
	}
}

// NotNil panics if v is nil. A nil pointer in an interface passes.
func NotNil(call, name string, v any) {
	if v == nil {
		Panicf(call, "%s is nil", name)
	}
}

// PointerFree panics if err is not nil, which is what freehold.PointerFree says of a type
// parameter. param names it, with "=", where a call has several.
func PointerFree(call, param string, err error) {
	if err != nil {
		name, fault, _ := strings.Cut(strings.TrimPrefix(err.Error(), "freehold: "), ": ")
		Panicf(call+"["+param+name+"]", "%s", fault)
	}
}

// Bytes returns "1 byte", or "n bytes" for any other n.
func Bytes(n int) string {
	if n == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}

// Panicf panics in the same form, for any other misuse. It is not inlined, which
// keeps the checks small enough to be.
//
//go:noinline
func Panicf(call, format string, args ...any) {
	panic("freehold: " + call + ": " + fmt.Sprintf(format, args...))
}
