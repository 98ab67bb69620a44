// Fast: Alloc and Zeroed of a Shared in assembly, without a pin.
//
// Assembly is not preempted, so it stays on its processor: see runtime_amd64.go of
// package pin, which checks that at start-up. If the check fails, or the processor's
// chunk does not fit the block, alloc and zero do the work.

//go:build !race && !freehold_portable && !asan

package arena

import "github.com/freehold-go/freehold/internal/pin"

type functions struct {
	alloc  func(s *Shared, size, align int) ([]byte, error)
	zeroed func(s *Shared, size, align int) ([]byte, error)
}

// plain has the slow paths, to which the assembly jumps.
var plain = functions{(*Shared).alloc, (*Shared).zero}

// fast has the functions of shared_fast_amd64.s if they may run, else those of plain.
var fast functions

func init() { fast = pin.Assembly(plain, entries()) }

// entries returns the addresses of the functions in shared_fast_amd64.s.
func entries() *uintptr

// For the assembly.
const (
	gM         = pin.GM
	mP         = pin.MP
	pID        = pin.PID
	tableLen   = pin.TableLen
	tableSlots = pin.TableSlots
	firstSlots = pin.FirstSlots

	maxFastAlign = 4 << 10 // the largest alignment that the assembly serves
)
