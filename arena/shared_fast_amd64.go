// Fast: Alloc and Zeroed of a Shared without a pin, in assembly.
//
// It keeps its processor as package pin says in runtime_amd64.go. Where that is
// not known, and whenever the processor's chunk will not do, alloc and zero do
// the work.

//go:build !race && !freehold_portable

package arena

import "github.com/freehold-go/freehold/internal/pin"

type functions struct {
	alloc  func(s *Shared, size, align int) ([]byte, error)
	zeroed func(s *Shared, size, align int) ([]byte, error)
}

// plain is where the assembly goes on.
var plain = functions{(*Shared).alloc, (*Shared).zero}

// fast is what is called: functions of shared_fast_amd64.s, if they may run.
var fast functions

func init() { fast = pin.Assembly(plain, entries()) }

// entries returns the addresses of the functions in shared_fast_amd64.s.
func entries() *uintptr

// For the assembly.
const (
	gM       = pin.GM
	mP       = pin.MP
	pID      = pin.PID
	tableLen = pin.TableLen

	maxFastAlign = 4 << 10 // the largest alignment that it serves
)
