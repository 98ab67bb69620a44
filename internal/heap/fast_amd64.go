// Fast: Alloc and Free of small blocks without a pin, in assembly.
//
// It keeps its processor as package pin says in runtime_amd64.go. What it knows
// of the runtime and of the compiler is checked when the program starts. Where
// that does not hold, and whenever the cache has no answer, alloc and free do
// the work.

//go:build !race && !freehold_portable && !freehold_debug

package heap

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/pin"
)

// Alloc returns a block of size bytes at a multiple of align, zeroed or not.
func (h *Heap) Alloc(size, align int, zero bool) ([]byte, error) {
	return fastAlloc(h, size, align, zero)
}

// Free takes back a block.
func (h *Heap) Free(b []byte) { fastFree(h, b) }

// FreePointer frees the block at p, nothing if p is nil.
func (h *Heap) FreePointer(p unsafe.Pointer) { fastFreePointer(h, p) }

// Alloc is the heap's, in a cache of its owner's.
func (o *OwnCache) Alloc(size, align int, zero bool) ([]byte, error) {
	return fastOwnAlloc(o, size, align, zero)
}

// Free is the heap's, into a cache of its owner's.
func (o *OwnCache) Free(b []byte) { fastOwnFree(o, b) }

type (
	allocFunc[T any]       func(t T, size, align int, zero bool) ([]byte, error)
	freeFunc[T any]        func(t T, b []byte)
	freePointerFunc[T any] func(t T, p unsafe.Pointer)
)

// What they call: functions of fast_amd64.s, if they are fit.
var (
	fastAlloc       allocFunc[*Heap]       = (*Heap).alloc
	fastFree        freeFunc[*Heap]        = (*Heap).free
	fastFreePointer freePointerFunc[*Heap] = (*Heap).freePointer
	fastOwnAlloc    allocFunc[*OwnCache]   = (*OwnCache).alloc
	fastOwnFree     freeFunc[*OwnCache]    = (*OwnCache).free
)

// Where the assembly goes on.
var (
	plainAlloc       allocFunc[*Heap]       = (*Heap).alloc
	plainFree        freeFunc[*Heap]        = (*Heap).free
	plainFreePointer freePointerFunc[*Heap] = (*Heap).freePointer
	plainOwnAlloc    allocFunc[*OwnCache]   = (*OwnCache).alloc
	plainOwnFree     freeFunc[*OwnCache]    = (*OwnCache).free
	cleared                                 = clearBlock
)

// What it knows of the runtime.
const (
	gM        = pin.GM
	mP        = pin.MP
	pID       = pin.PID
	maxPlaces = pin.Max
)

func clearBlock(addr uintptr, size int) ([]byte, error) { return block(addr, size, true), nil }

// points are the addresses of the functions in fast_amd64.s.
type points struct{ alloc, free, freePointer, ownAlloc, ownFree uintptr }

func entryPoints(e *points)

var entryPoint points

func init() {
	e := &entryPoint
	entryPoints(e)
	if pin.Known() {
		fastAlloc = pin.Func[allocFunc[*Heap]](&e.alloc)
		fastFree = pin.Func[freeFunc[*Heap]](&e.free)
		fastFreePointer = pin.Func[freePointerFunc[*Heap]](&e.freePointer)
		fastOwnAlloc = pin.Func[allocFunc[*OwnCache]](&e.ownAlloc)
		fastOwnFree = pin.Func[freeFunc[*OwnCache]](&e.ownFree)
	}
}
