// Fast: Alloc and Zeroed of a Shared without a pin, in assembly.
//
// It keeps its processor as package pin says in runtime_amd64.go. Where that is
// not known, and whenever the processor's chunk will not do, alloc and zero do
// the work.

//go:build !race && !freehold_portable

package arena

import "github.com/freehold-go/freehold/internal/pin"

type sharedFunc func(s *Shared, size, align int) ([]byte, error)

// What Alloc and Zeroed call: functions of shared_fast_amd64.s, if they are fit.
var (
	fastAlloc  sharedFunc = (*Shared).alloc
	fastZeroed sharedFunc = (*Shared).zero
)

// Where the assembly goes on.
var (
	plainAlloc  sharedFunc = (*Shared).alloc
	plainZeroed sharedFunc = (*Shared).zero
)

// What it knows of the runtime.
const (
	gM        = pin.GM
	mP        = pin.MP
	pID       = pin.PID
	maxPlaces = pin.Max
)

// maxFastAlign is the largest alignment that the assembly serves.
const maxFastAlign = 4 << 10

// points are the addresses of the functions in shared_fast_amd64.s.
type points struct{ alloc, zeroed uintptr }

func entryPoints(e *points)

var entryPoint points

func init() {
	e := &entryPoint
	entryPoints(e)
	if pin.Known() {
		fastAlloc = pin.Func[sharedFunc](&e.alloc)
		fastZeroed = pin.Func[sharedFunc](&e.zeroed)
	}
}
