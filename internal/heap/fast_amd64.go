// Fast: Alloc and Free of small blocks without a pin, in assembly.
//
// The assembly is not preempted: see runtime_amd64.go of package pin. Its assumptions about the
// runtime and the compiler are checked when the program starts. If a check fails, the functions in
// Go are used instead. They also continue the work if the cache has no block or no room for one.

//go:build !race && !freehold_portable && !asan

package heap

import (
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/small"
	"github.com/freehold-go/freehold/internal/watch"
)

// large has the functions to which the assembly jumps for large blocks.
var large = largeFunctions{(*Heap).allocRun, (*Heap).freeRun}

type largeFunctions struct {
	alloc func(h *Heap, size, align int, zero bool) ([]byte, error)
	free  func(h *Heap, b []byte)
}

// idle and counting have the functions of fast_amd64.s. Alloc of counting counts down to the next
// watched block. The functions jump to plain if they cannot finish.
var idle, counting functions

// assembled returns functions in assembly, if they may run, else plain.
func assembled(plain functions) functions {
	idle, counting = pin.Assembly(plain, entries()), pin.Assembly(plain, countingEntries())
	return idle
}

// countInAssembly makes the fast paths count down to the next watched block, or not. A func is one
// word, so other goroutines may call it meanwhile.
func countInAssembly(on bool) {
	to := &idle
	if on {
		to = &counting
	}
	atomic.StorePointer((*unsafe.Pointer)(unsafe.Pointer(&Fast.Alloc)), *(*unsafe.Pointer)(unsafe.Pointer(&to.Alloc)))
}

// cleared has the function to which the assembly jumps to clear a block that takes more than a few
// stores.
var cleared = clearBlock

func clearBlock(addr uintptr, size int) ([]byte, error) { return block(addr, size, true), nil }

// entries and countingEntries return the addresses of the functions of idle and counting.
func entries() *uintptr
func countingEntries() *uintptr

// For the assembly.
const (
	gM         = pin.GM
	mP         = pin.MP
	pID        = pin.PID
	tableLen   = unsafe.Offsetof(caches{}.Table) + pin.TableLen
	tableSlots = unsafe.Offsetof(caches{}.Table) + pin.TableSlots
	firstSlots = pin.FirstSlots

	maxSmall       = small.MaxSize
	maxAlign       = small.MaxAlign
	freeZero       = small.FreeZero
	freeDirty      = small.FreeDirty
	mapHeapMask    = small.MapHeapMask
	mapPageMask    = small.MapPageMask
	mapPageShift   = small.MapPageShift
	mapStatusShift = small.MapStatusShift
	statusShift    = small.StatusShift
	entryAddr      = unsafe.Offsetof(small.Entry{}.Addr)
	entryStatus    = unsafe.Offsetof(small.Entry{}.Status)
	entrySize      = unsafe.Sizeof(small.Entry{})
	cacheTops      = small.CacheTops
	cacheEnds      = small.CacheEnds
	cacheSpareTops = small.CacheSpareTops
	cacheSpareEnds = small.CacheSpareEnds
	sentinelStatus = small.SentinelStatus
	pageShift      = pages.PageShift
	countdownExtra = watch.CountdownExtra

	firstBase    = pages.FirstBase
	firstUsed    = pages.FirstUsed
	firstEntries = pages.FirstEntries
)
