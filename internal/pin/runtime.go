// Runtime: what a fast path needs to do without the pin.
//
// The compiler marks every instruction of a //go:nosplit function as none at which the
// runtime may preempt a goroutine, but for those that set up the frame and store arguments
// (IsUnsafe in cmd/compile/internal/liveness, isAsyncSafePoint in runtime/preempt.go). So in
// such a function, a leaf, a goroutine keeps its processor from the load of the processor's
// number to the next call, or the return:
//
//	caller --> entry, in assembly: passes g --jump--> leaf, in Go: loads g.m.p.id --> caller
//	                                                         if it gives up --call--> slow
//
// What a leaf gets is g, which is the same on each processor. So it does not matter if the
// goroutine is preempted before the load.
//
// Nothing else takes the processor away, or looks at a leaf's work half done:
//
//   - A signal handler runs on the goroutine's thread, which keeps the processor, and calls
//     nothing of this module. That of SIGPROF unwinds the stack, which has a leaf's frame as
//     any other, and so does a debugger that stops the thread. The runtime refuses a debugger's
//     calls of functions there, as it does preemption (debugCallCheck).
//   - Only system calls and cgo calls give the processor away, and sysmon takes it only from
//     those.
//   - The collector scans and moves a stack once its goroutine has stopped at a safe point.
//     A leaf has none, so a stop of the world waits for it.
//   - A leaf does not grow the stack: the linker proves that its frame fits below the guard.
//   - A leaf stores no pointers into Go memory, so it owes no write barrier. If it stored one,
//     the compiler would add a call, which onlyCalls finds.
//   - A fault in a leaf is a panic as anywhere. It can only come before the first store, at a
//     nil pointer, or from a block whose memory the caller has taken away.
//
// Nothing in the language promises that. So it is done only with the versions of Go and on
// the systems that are listed here, and only if the code of procPin is as expected and that of
// each leaf calls nothing but its slow path. Builds with -N, with -l, with checkptr or for fuzzing
// add calls, so their leaves are called with pins.
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
	calls   bool // a leaf has calls
)

// Obstacle returns "" if leaves are called without pins, else the reason why not.
func Obstacle() string {
	switch {
	case !slices.Contains(systems, system):
		return fmt.Sprintf("%s is none of the tested systems, %s", system, strings.Join(systems, ", "))
	case !knownVersion():
		return fmt.Sprintf("%s is none of the tested versions, %s", version, strings.Join(tested, ", "))
	case calls || !onlyCalls(codeOf(echo), 0):
		return "the compiler added calls to the fast paths, as it does with -N and for fuzzing"
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
// processor from the call of SlotAt to leaf's return, or its call of slow. If there is an
// obstacle, or leaf calls anything else, Unpinned returns pinned instead. It is for variables
// that are set before main begins.
//
// leaf has four words as arguments, and then at. It is declared //go:nosplit and
// //go:noinline; calls nothing that is not inlined but slow, which is //go:noinline; and
// stores no pointers into Go memory.
func Unpinned[F any](leaf, slow, pinned F) F {
	code := codeOf(leaf)
	if Obstacle() != "" {
		return pinned
	}
	if !onlyCalls(code, codeOf(slow)) {
		calls = true
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
	slot := int(at)
	if at >= maxID {
		at = *(*uintptr)(unsafe.Add(nil, at+gM)) // m
		at = *(*uintptr)(unsafe.Add(nil, at+mP)) // p
		slot = int(*(*int32)(unsafe.Add(nil, at)))
	}
	return slot
}

// None is at for slow, from a caller who holds no slot.
const None = ^uintptr(0)

// Held reports whether the caller of a leaf holds a slot, by its argument at: then slow leaves
// the work to the caller.
func Held(at uintptr) bool { return at < maxID }

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

// onlyCalls reports whether the function with that code calls none but slow. It may take other
// bytes for a call, if they would be one of a function.
func onlyCalls(code, slow uintptr) bool {
	const align = 16 // functions begin at multiples
	for at := code; entryOf(at) == code; at += align {
		for pc := at; pc < at+align; pc += codeStep {
			if to, is := callAt(pc); is && to != slow && entryOf(to) == to {
				return false
			}
		}
	}
	return true
}

// entryOf returns where the function with code at pc begins, 0 if there is none.
func entryOf(pc uintptr) uintptr {
	if f := runtime.FuncForPC(pc); f != nil {
		return f.Entry()
	}
	return 0
}
