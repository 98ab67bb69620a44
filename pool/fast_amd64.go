// Fast: get and put without a pin, in assembly.
//
// It keeps its processor as package pin says in runtime_amd64.go. Where that is
// not known, and whenever the stack has no answer, Blocks.get and Blocks.put do
// the work.

//go:build !race && !freehold_portable && !freehold_debug

package pool

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/pin"
)

type functions struct {
	get   func(b *Blocks) (unsafe.Pointer, error)
	put   func(b *Blocks, p unsafe.Pointer)
	alloc func(b *Blocks, size, align int) ([]byte, error)
	free  func(b *Blocks, r []byte)
}

// plain is where the assembly goes on.
var plain = functions{(*Blocks).get, (*Blocks).put, (*Blocks).alloc, (*Blocks).free}

// fast is what is called: functions of fast_amd64.s, if they may run.
var fast functions

func init() { fast = pin.Assembly(plain, entries()) }

// clearing is where it goes on to clear a block.
var clearing = cleared

// entries returns the addresses of the functions in fast_amd64.s.
func entries() *uintptr

// For the assembly.
const (
	gM         = pin.GM
	mP         = pin.MP
	pID        = pin.PID
	tableLen   = pin.TableLen
	hashFactor = golden

	maxZero = 64 // bytes that it clears itself
)

// The assembly multiplies indices by these sizes.
const (
	_ = -(unsafe.Sizeof(entry{}) ^ 16)
	_ = -(unsafe.Sizeof(slot{}) ^ slotBytes)
)
