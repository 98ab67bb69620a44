// Runtime: what a fast path needs to do without the pin.
//
// The compiler marks every instruction of a //go:nosplit function as none at which the
// runtime may preempt a goroutine, but for those that set up the frame and store arguments
// (IsUnsafe in cmd/compile/internal/liveness, isAsyncSafePoint in runtime/preempt.go). So in
// such a function that calls nothing, a leaf, a goroutine keeps its processor from the load
// of the processor's number to the return:
//
//	caller --> entry, in assembly: passes g --jump--> leaf, in Go: loads g.m.p.id --> caller
//
// What a leaf gets is g, which is the same on each processor. So it does not matter if the
// goroutine is preempted before the load.
//
// Nothing in the language promises that. So it is done only with the versions of Go and on
// the systems that are listed here, and only if the code of procPin and of each leaf is as
// expected: calls need a frame, and leaves have none. Builds with -N, with checkptr or for
// fuzzing may add calls, so their leaves are called with pins.
// TestKnown says how to test a new version; Obstacle says why leaves are called with pins.

//go:build (amd64 || arm64) && !race && !freehold_portable && !asan

package pin

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"unsafe"
)

// tested are the versions of Go, patch releases included, and systems those on which
// goroutines were found not to be preempted in leaves.
var (
	tested  = []string{"go1.26", "go1.27"}
	systems = []string{"linux", "windows"}
)

var (
	version = runtime.Version()
	system  = runtime.GOOS
	framed  bool // a leaf has a frame
)

// Obstacle returns "" if leaves are called without pins, else the reason why not.
func Obstacle() string {
	switch {
	case !slices.Contains(systems, system):
		return fmt.Sprintf("%s is none of the tested systems, %s", system, strings.Join(systems, ", "))
	case !knownVersion():
		return fmt.Sprintf("%s is none of the tested versions, %s", version, strings.Join(tested, ", "))
	case framed || hasFrame(codeOf(echo)):
		return "the compiler added calls or variables to the fast paths, as it does with -N and for fuzzing"
	case mOfP() == 0 || !findsProcessor():
		return "the runtime keeps the processor elsewhere than that of the tested versions"
	}
	return ""
}

// knownVersion reports whether the version is a tested one or a patch release of
// that. Development versions, candidates, experiments and the versions of other
// vendors are not, since they may have another runtime.
func knownVersion() bool {
	for _, v := range tested {
		patch, found := strings.CutPrefix(version, v)
		if found && (patch == "" || patch[0] == '.' && strings.Trim(patch[1:], "0123456789") == "") {
			return true
		}
	}
	return false
}

// Unpinned returns a function that calls leaf with a last argument from which [SlotAt] has the
// number of the processor, whatever that of the call is. The goroutine stays on that
// processor from the call of SlotAt to leaf's return. If there is an obstacle, or leaf has a
// frame, Unpinned returns pinned instead. It is for variables that are set before main begins.
//
// leaf has four words as arguments, and then at. It is declared //go:nosplit and
// //go:noinline; calls nothing that is not inlined; takes few enough variables to hold
// them all in registers; and stores no pointers into Go memory, so that it owes the collector
// no write barrier.
func Unpinned[F any](leaf, pinned F) F {
	code := codeOf(leaf)
	if Obstacle() != "" {
		return pinned
	}
	if hasFrame(code) {
		framed = true
		return pinned
	}
	return unpinned[F](code)
}

// closure is what the func that Unpinned returns points to. A func is the address of a word
// with the address of its code, which finds the func's own address in a register.
type closure struct {
	entry uintptr // in assembly
	leaf  uintptr // code
}

// unpinned is Unpinned without a check.
func unpinned[F any](leaf uintptr) F {
	c := &closure{entry(), leaf}
	return *(*F)(unsafe.Pointer(&c))
}

// pointer turns an address of code, or in the runtime's own memory, into a pointer.
//
//go:nocheckptr
func pointer(addr uintptr) unsafe.Pointer { return unsafe.Add(nil, addr) }

// codeOf returns the address of a func's code.
func codeOf[F any](f F) uintptr { return **(**uintptr)(unsafe.Pointer(&f)) }

// entry returns the address of the code that jumps to a leaf.
func entry() uintptr

// stackGuard returns the address of the word by which the runtime asks the goroutine to yield.
// It is for a test.
func stackGuard() *uintptr

// SlotAt returns the number of the slot that a leaf has until it returns, by its argument at.
// Callers who hold a slot pass its number as at.
func SlotAt(at uintptr) int {
	if at < maxID {
		return int(at)
	}
	m := *(*uintptr)(pointer(at + gM))
	p := *(*uintptr)(pointer(m + mP))
	return int(*(*int32)(pointer(p)))
}

// Where the runtime keeps the processor's number: g holds the address of an m, that of a p,
// and that begins with it.
const gM = 0x30

var mP = mOfP()

const maxID = 1 << 16 // no processor's number, and below each address

// echo is a leaf.
//
//go:nosplit
//go:noinline
func echo(a, b, c, d, at uintptr) (v, w, x, y uintptr, slot int) { return a, b, c, d, SlotAt(at) }

// findsProcessor reports whether leaves get their arguments and find the processor's number.
func findsProcessor() bool {
	f := unpinned[func(a, b, c, d, at uintptr) (v, w, x, y uintptr, slot int)](codeOf(echo))
	defer procUnpin()
	slot := procPin()
	v, w, x, y, got := f(1, 20, 300, 4000, 0)
	return v == 1 && w == 20 && x == 300 && y == 4000 && got == slot
}

// mOfP returns where an m has its p, by the code of procPin, or 0 if that is other than expected.
func mOfP() uintptr {
	code := unsafe.Slice((*byte)(pointer(codeOf(procPin))), len(procPinCode))
	for i, b := range code {
		if b&procPinMask[i] != procPinCode[i] {
			return 0
		}
	}
	return offsetIn(code)
}
