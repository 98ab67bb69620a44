// Fast: get and put in assembly, without a pin.
//
// Assembly is not preempted, so it stays on its processor: see runtime_amd64.go of
// package pin, which checks that at start-up. If the check fails, or the processor's
// stack is empty, full or missing, Blocks.get and Blocks.put do the work.

//go:build !race && !freehold_portable && !asan

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

// plain has the slow paths, to which the assembly jumps.
var plain = functions{(*Blocks).get, (*Blocks).put, (*Blocks).alloc, (*Blocks).free}

// fast has the functions of fast_amd64.s if they may run, else those of plain.
var fast functions

func init() { fast = pin.Assembly(plain, entries()) }

// entries returns the addresses of the functions in fast_amd64.s.
func entries() *uintptr

// For the assembly.
const (
	gM         = pin.GM
	mP         = pin.MP
	pID        = pin.PID
	tableLen   = pin.TableLen
	tableSlots = pin.TableSlots
	firstSlots = pin.FirstSlots
	hashFactor = golden
)

// The assembly multiplies indices by these sizes.
const (
	_ = -(unsafe.Sizeof(entry{}) ^ 16)
	_ = -(unsafe.Sizeof(slot{}) ^ slotBytes)
)
