// Fast: get and put without a pin, in assembly.
//
// It keeps its processor as package pin says in runtime_amd64.go. Where that is
// not known, and whenever the stack has no answer, Blocks.get and Blocks.put do
// the work.

//go:build !race && !freehold_portable

package pool

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/pin"
)

type (
	getFunc   func(b *Blocks) (unsafe.Pointer, error)
	putFunc   func(b *Blocks, p unsafe.Pointer)
	allocFunc func(b *Blocks, size, align int) ([]byte, error)
	freeFunc  func(b *Blocks, r []byte)
)

// What is called: functions of fast_amd64.s, if they are fit.
var (
	fastGet   getFunc   = (*Blocks).get
	fastPut   putFunc   = (*Blocks).put
	fastAlloc allocFunc = (*Blocks).alloc
	fastFree  freeFunc  = (*Blocks).free
)

// Where the assembly goes on.
var (
	plainGet   getFunc   = (*Blocks).get
	plainPut   putFunc   = (*Blocks).put
	plainAlloc allocFunc = (*Blocks).alloc
	plainFree  freeFunc  = (*Blocks).free

	clearing = cleared
)

// For the assembly.
const (
	goroutineM = pin.GM
	mProcessor = pin.MP
	processor  = pin.PID
	maxPlaces  = pin.Max
	hashFactor = golden

	maxZero = 64 // bytes that the assembly clears itself
)

// The assembly multiplies indices by these sizes.
const (
	_ = -(unsafe.Sizeof(entry{}) ^ 16)
	_ = -(unsafe.Sizeof(slot{}) ^ slotBytes)
)

// points are the addresses of the functions in fast_amd64.s.
type points struct{ get, put, alloc, free uintptr }

func entryPoints(e *points)

var entryPoint points

func init() {
	e := &entryPoint
	entryPoints(e)
	if pin.Known() {
		fastGet = pin.Func[getFunc](&e.get)
		fastPut = pin.Func[putFunc](&e.put)
		fastAlloc = pin.Func[allocFunc](&e.alloc)
		fastFree = pin.Func[freeFunc](&e.free)
	}
}
