//go:build !race && !freehold_portable && !asan

package stacks

import "github.com/freehold-go/freehold/internal/pin"

// walker holds walk in assembly, or the fallback if assembly must not run: see package pin.
var walker = pin.Assembly(functions{func() uint64 { return 0 }}, entries())

type functions struct {
	walk func() uint64
}

// walk returns a hash of the return addresses on the stack, or 0 if there is no assembly.
func walk() uint64 { return walker.walk() }

// entries returns the addresses of the functions in walk_amd64.s.
func entries() *uintptr

const maxFrames = MaxFrames // for the assembly
