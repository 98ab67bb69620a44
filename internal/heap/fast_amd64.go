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
	return fast.alloc(h, size, align, zero)
}

// Free takes back a block.
func (h *Heap) Free(b []byte) { fast.free(h, b) }

// FreePointer frees the block at p, nothing if p is nil.
func (h *Heap) FreePointer(p unsafe.Pointer) { fast.freePointer(h, p) }

// Alloc is the heap's, in a cache of its owner's.
func (o *LocalCache) Alloc(size, align int, zero bool) ([]byte, error) {
	return fast.localAlloc(o, size, align, zero)
}

// Free is the heap's, into a cache of its owner's.
func (o *LocalCache) Free(b []byte) { fast.localFree(o, b) }

type functions struct {
	alloc       func(h *Heap, size, align int, zero bool) ([]byte, error)
	free        func(h *Heap, b []byte)
	freePointer func(h *Heap, p unsafe.Pointer)
	localAlloc  func(o *LocalCache, size, align int, zero bool) ([]byte, error)
	localFree   func(o *LocalCache, b []byte)
}

// plain is where the assembly goes on.
var plain = functions{(*Heap).alloc, (*Heap).free, (*Heap).freePointer, (*LocalCache).alloc, (*LocalCache).free}

// fast is what is called: functions of fast_amd64.s, if they may run.
var fast functions

func init() { fast = pin.Assembly(plain, entries()) }

// cleared is where it goes on to clear a block.
var cleared = clearBlock

func clearBlock(addr uintptr, size int) ([]byte, error) { return block(addr, size, true), nil }

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
)
