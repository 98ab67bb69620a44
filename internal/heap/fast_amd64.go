// Fast: Alloc and Free of small blocks without a pin, in assembly.
//
// The assembly is not preempted: see runtime_amd64.go of package pin. What it relies
// on in the runtime and the compiler is checked when the program starts. If a check
// fails, the functions in Go are used instead. They also continue the work if the
// cache has no block, or no room for one.

//go:build !race && !freehold_portable && !asan

package heap

import (
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/watch"
)

type largeFunctions struct {
	alloc func(h *Heap, size, align int, zero bool) ([]byte, error)
	free  func(h *Heap, b []byte)
}

// large is what it jumps to for large blocks.
var large = largeFunctions{(*Heap).allocRun, (*Heap).freeRun}

// idle are the functions of fast_amd64.s, counting those whose Alloc counts down to the next
// event. Where they cannot finish, they jump to plain.
var idle, counting functions

// assembled returns functions in assembly, if they may run, else plain.
func assembled(plain functions) functions {
	idle, counting = pin.Assembly(plain, entries()), pin.Assembly(plain, countingEntries())
	return idle
}

// countInAssembly makes the fast paths count down to the next event, or not. A func is
// one word, so others may call meanwhile.
func countInAssembly(on bool) {
	to := &idle
	if on {
		to = &counting
	}
	atomic.StorePointer((*unsafe.Pointer)(unsafe.Pointer(&Fast.Alloc)), *(*unsafe.Pointer)(unsafe.Pointer(&to.Alloc)))
}

// cleared is what it jumps to for a block that takes more than a few stores to clear.
var cleared = clearBlock

func clearBlock(addr uintptr, size int) ([]byte, error) { return block(addr, size, true), nil }

// entries returns the addresses of the functions in fast_amd64.s, countingEntries those
// that count.
func entries() *uintptr
func countingEntries() *uintptr

// For the assembly.
const (
	gM         = pin.GM
	mP         = pin.MP
	pID        = pin.PID
	tableLen   = pin.TableLen
	tableSlots = pin.TableSlots
	firstSlots = pin.FirstSlots

	sentinelStatus = unsafe.Offsetof(sentinel.status)
	pageShift      = pages.PageShift
	countdownExtra = watch.CountdownExtra

	firstBase    = pages.FirstBase
	firstUsed    = pages.FirstUsed
	firstEntries = pages.FirstEntries
)
