// Fast: Alloc and Free of small blocks without a pin, in assembly.
//
// A goroutine is never preempted inside an assembly function that calls
// nothing. It stays on its processor to the end, whose cache it has to itself,
// and whoever stops the world waits for it: what procPin does, for free.
//
// What the assembly knows of the runtime and of the compiler is checked when
// the program starts. Where it does not hold, and whenever the cache has no
// answer, alloc and free do the work.

//go:build !race && !freehold_portable

package heap

import (
	"bytes"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

// Alloc returns a block of size bytes at a multiple of align, zeroed or not.
func (h *Heap) Alloc(size, align int, zero bool) ([]byte, error) {
	return fastAlloc(h, size, align, zero)
}

// Free takes back a block.
func (h *Heap) Free(b []byte) { fastFree(h, b) }

type (
	allocFunc func(h *Heap, size, align int, zero bool) ([]byte, error)
	freeFunc  func(h *Heap, b []byte)
)

// What Alloc and Free call: functions of fast_amd64.s, if they are fit.
var (
	fastAlloc allocFunc = (*Heap).alloc
	fastFree  freeFunc  = (*Heap).free
)

// Where the assembly goes on.
var (
	plainAlloc allocFunc = (*Heap).alloc
	plainFree  freeFunc  = (*Heap).free
	cleared              = clearBlock
)

func clearBlock(addr uintptr, size int) ([]byte, error) {
	b := unsafe.Slice((*byte)(vm.Pointer(addr)), size)
	clear(b)
	return b, nil
}

// entryPoints returns the addresses of the functions in fast_amd64.s that are
// called by registers. Go would call them by way of the stack if they had
// declarations, which costs as much as the pin.
func entryPoints() (alloc, free, probeAlloc, probeFree, processor uintptr)

var entryPoint struct{ alloc, free, probeAlloc, probeFree, processor uintptr }

// funcAt returns the function at the address in entry, which stays there.
func funcAt[F any](entry *uintptr) F { return *(*F)(unsafe.Pointer(&entry)) }

func init() {
	e := &entryPoint
	e.alloc, e.free, e.probeAlloc, e.probeFree, e.processor = entryPoints()
	if knowsCompiler() && knowsRuntime() {
		fastAlloc = funcAt[allocFunc](&e.alloc)
		fastFree = funcAt[freeFunc](&e.free)
	}
}

// knowsCompiler reports whether Go functions pass arguments in the registers
// in which the assembly takes them. The probes touch no memory.
func knowsCompiler() bool {
	h, size, align := new(Heap), 1<<20, 1<<10
	b, err := funcAt[allocFunc](&entryPoint.probeAlloc)(h, size, align, true)
	if unsafe.Pointer(unsafe.SliceData(b)) != unsafe.Pointer(h) || len(b) != size || cap(b) != size+align || err != nil {
		return false
	}
	sum := funcAt[func(*Heap, []byte) uintptr](&entryPoint.probeFree)(h, b)
	return sum == 3*uintptr(unsafe.Pointer(h))+4*uintptr(size)+8*uintptr(size+align)
}

// pinCode is runtime.procPin, which shows where the runtime keeps what the
// assembly needs. The count of pins may stand anywhere.
var pinCode = []byte{
	0x49, 0x8b, 0x4e, 0x30, // MOVQ g_m(R14), CX
	0xff, 0x81, 0, 0, 0, 0, // INCL m_locks(CX)
	0x48, 0x8b, 0x89, 0xd0, 0x00, 0x00, 0x00, // MOVQ m_p(CX), CX
	0x48, 0x63, 0x01, // MOVLQSX p_id(CX), AX
	0xc3, // RET
}

// knowsRuntime reports whether procPin finds the processor as the assembly
// does.
func knowsRuntime() bool {
	pin := procPin
	code := unsafe.Slice((*byte)(vm.Pointer(**(**uintptr)(unsafe.Pointer(&pin)))), len(pinCode))
	return bytes.Equal(code[:6], pinCode[:6]) && bytes.Equal(code[10:], pinCode[10:])
}
