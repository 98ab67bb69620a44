// Fast: get and put in assembly, without a pin.
//
// Assembly is not preempted, so it stays on its processor: see runtime_amd64.go of
// package pin, which checks that at start-up. If the check fails, or the processor's
// stack is empty, full or missing, functions in Go do the work.

//go:build !race && !freehold_portable && !asan

package pool

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/pin"
)

// assembled returns functions in assembly if they may run, or else plain. Assembly that cannot
// finish jumps to plain.
func assembled(plain functions) functions { return pin.Assembly(plain, entries()) }

// entries returns the addresses of the functions in fast_amd64.s.
func entries() *uintptr

// Offsets for the assembly.
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
