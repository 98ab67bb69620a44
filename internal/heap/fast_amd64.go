// Fast: Alloc and Free from a cache without a pin, in assembly.
//
// The assembly is not preempted: see runtime_amd64.go of package pin. When the program starts,
// package pin checks the assembly's assumptions about the runtime and the compiler. If a check
// fails, the functions in Go are used instead. The assembly jumps to slow if the cache has no
// block, or no room for one.

//go:build !race && !freehold_portable && !asan

package heap

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/small"
	"github.com/freehold-go/freehold/internal/watch"
)

// slow has the functions to which the assembly jumps if it cannot finish.
var slow functions

func init() {
	slow = functions{(*Heap).allocSlow, (*Heap).mallocSlow, (*Heap).freeSlow, (*Heap).freePointerSlow}
}

// inAssembly returns the functions in assembly, or those in Go if these may not run.
func inAssembly(inGo functions) (idle, counting functions) {
	return pin.Assembly(inGo, code()), pin.Assembly(inGo, countingCode())
}

// cleared has the function to which the assembly jumps to clear a block of more than 64 bytes.
var cleared = clearBlock

func clearBlock(addr uintptr, size int) ([]byte, error) { return block(addr, size, true), nil }

// code and countingCode return the addresses of the functions of idle and counting.
func code() *uintptr
func countingCode() *uintptr

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
	tops           = small.Tops
	ends           = small.Ends
	spareTops      = small.SpareTops
	spareEnds      = small.SpareEnds
	sentinelStatus = small.SentinelStatus
	pageShift      = pages.PageShift
	pageBytes      = pages.PageBytes
	keptPages      = maxKeptPages
	largeRun       = pages.LargeRun
	heapID         = unsafe.Offsetof(Heap{}.pages) + unsafe.Offsetof(pages.Heap{}.ID)
	spanBase       = unsafe.Offsetof(pages.Span{}.Base)
	spanPages      = pages.SpanPages
	spanSize       = unsafe.Offsetof(pages.Span{}.Size)
	spanOwner      = unsafe.Offsetof(pages.Span{}.Owner)
	spanKind       = unsafe.Offsetof(pages.Span{}.Kind)
	spanAlign      = pages.SpanAlign
	spanSeparate   = unsafe.Offsetof(pages.Span{}.Separate)
	spanNext       = unsafe.Offsetof(pages.Span{}.Next)
	countdownExtra = watch.CountdownExtra

	firstBase  = pages.FirstBase
	firstUsed  = pages.FirstUsed
	firstPages = pages.FirstPages
	firstWords = pages.FirstWords

	// The assembly compares Separate and Watched with 0 in one word.
	_ = -(spanSeparate % 8)
	_ = -(unsafe.Offsetof(pages.Span{}.Watched) ^ (spanSeparate + 4))
)
