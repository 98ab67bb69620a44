// Runtime: fast paths that hold a slot without a pin.
//
// The compiler marks nearly every instruction of a //go:nosplit function as unsafe for
// preemption. The exceptions set up the frame and store arguments (IsUnsafe in
// cmd/compile/internal/liveness, isAsyncSafePoint in runtime/preempt.go). So in such a function,
// called a leaf, a goroutine keeps its processor from the load of the processor's number to the
// next call or the return:
//
//	caller --> entry, in assembly: passes g --jump--> leaf, in Go: loads g.m.p.id --> caller
//	                                                         if it gives up --call--> slow
//
// The entry passes g, which is the same on each processor. So a preemption before the load does
// no harm.
//
// Nothing else takes the processor away or sees a leaf's work half done:
//
//   - A signal handler runs on the goroutine's thread, which keeps the processor, and calls
//     nothing of this module. The handler of SIGPROF unwinds the stack, on which a leaf's frame
//     is like any other. So does a debugger that stops the thread. The runtime refuses calls of
//     functions by a debugger there, as it refuses preemption (debugCallCheck).
//   - Only system calls and cgo calls give the processor away, and sysmon retakes it only during
//     such a call.
//   - The collector scans and moves a stack once its goroutine has stopped at a safe point.
//     A leaf has none, so a stop of the world waits for it.
//   - A leaf does not grow the stack: the linker proves that its frame fits below the guard.
//   - A leaf stores no pointers into Go memory, so it needs no write barrier. If it stored one,
//     the compiler would add a call, which onlyCalls finds.
//   - A fault in a leaf is a panic as anywhere. It can only come before the first store, at a
//     nil pointer, or from a block whose memory the caller has taken away.
//
// The language promises none of this. So leaves run without pins only with the versions of Go and
// on the systems that are listed here, only if procPin has the expected code, and only if each
// leaf calls nothing but its slow path. Builds with -N, -l, checkptr or fuzzing add calls, so they
// call leaves with pins. TestKnown says how to test a new version; Obstacle tells why leaves are
// called with pins.

//go:build (amd64 || arm64) && !race && !freehold_portable && !asan

package pin

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"unsafe"
)

// tested lists the versions of Go, patch releases included, and systems the systems on which tests
// found no preemption in leaves.
var (
	tested  = []string{"go1.25", "go1.26", "go1.27"}
	systems = []string{"linux", "windows"}
)

var (
	version = runtime.Version()
	system  = runtime.GOOS
	calls   bool // a leaf has calls
)

// Obstacle returns "" if leaves are called without pins, or else the reason why not.
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

// knownVersion reports whether the version is a tested one or a patch release of it. Development
// versions, candidates, experiments and other vendors' versions are not, since their runtime may
// differ.
func knownVersion() bool {
	for _, v := range tested {
		patch, found := strings.CutPrefix(version, v)
		if found && (patch == "" || patch[0] == '.' && strings.Trim(patch[1:], "0123456789") == "") {
			return true
		}
	}
	return false
}

// Unpinned returns a function that calls leaf and sets its last argument, at, so that [SlotAt]
// finds the processor's number. The goroutine stays on that processor from SlotAt to leaf's return
// or its call of slow. If there is an obstacle, or leaf calls anything else, Unpinned returns
// pinned instead. It is for variables that are set before main begins.
//
// leaf has four words as arguments, and then at. P has results in the same registers. It leaves out
// at, and unused arguments before it, since they are in registers. It is declared //go:nosplit and
// //go:noinline. After inlining it calls nothing but slow, which is //go:noinline. It stores no
// pointers into Go memory.
func Unpinned[F, P any](leaf, slow F, pinned P) P {
	code := codeOf(leaf)
	if Obstacle() != "" {
		return pinned
	}
	if !onlyCalls(code, codeOf(slow)) {
		calls = true
		return pinned
	}
	return unpinned[P](code)
}

// closure is the closure of the func that Unpinned returns. A func value points to its closure,
// whose first word is the address of the code. The code finds the closure's address in a register.
type closure struct {
	entry uintptr // code of entry, in assembly
	leaf  uintptr // code of the leaf
}

// unpinned is Unpinned without the checks.
func unpinned[F any](leaf uintptr) F {
	c := &closure{entry(), leaf}
	return *(*F)(unsafe.Pointer(&c))
}

// pointer turns an address in code, or in the runtime's own memory, into a pointer.
//
//go:nocheckptr
func pointer(addr uintptr) unsafe.Pointer { return unsafe.Add(nil, addr) }

// codeOf returns the address of a func's code.
func codeOf[F any](f F) uintptr { return **(**uintptr)(unsafe.Pointer(&f)) }

// entry returns the address of the code that jumps to a leaf.
func entry() uintptr

// stackGuard returns the address of the word by which the runtime asks the goroutine to yield.
// For a test.
func stackGuard() *uintptr

// SlotAt returns the number of the slot that a leaf holds until it returns. at is either the g,
// from the entry, or the number of a slot that the leaf's caller holds.
func SlotAt(at uintptr) int {
	slot := int(at)
	if at >= maxID {
		at = *(*uintptr)(unsafe.Add(nil, at+gM)) // m
		at = *(*uintptr)(unsafe.Add(nil, at+mP)) // p
		slot = int(*(*int32)(unsafe.Add(nil, at)))
	}
	return slot
}

// None is the argument at for slow from a caller that holds no slot.
const None = ^uintptr(0)

// Held reports whether the caller of a leaf holds a slot, by the leaf's argument at. If so, slow
// leaves the work to the caller.
func Held(at uintptr) bool { return at < maxID }

// The processor's number is the first word of the p; g.m.p is the path to it.
const gM = 0x30

var mP = mOfP()

const maxID = 1 << 16 // above each processor's number, below each address

// echo is a leaf that returns its arguments and its slot.
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

// mOfP returns the offset of the p in an m, from the code of procPin, or 0 if the code is not as
// expected.
func mOfP() uintptr {
	code := unsafe.Slice((*byte)(pointer(codeOf(procPin))), len(procPinCode))
	for i, b := range code {
		if b&procPinMask[i] != procPinCode[i] {
			return 0
		}
	}
	return offsetIn(code)
}

// onlyCalls reports whether the function at code calls none but slow. Other bytes that look like
// a call of a function count as one.
func onlyCalls(code, slow uintptr) bool {
	const align = 16 // functions begin at multiples of it
	for at := code; entryOf(at) == code; at += align {
		for pc := at; pc < at+align; pc += codeStep {
			if to, is := callAt(pc); is && to != slow && entryOf(to) == to {
				return false
			}
		}
	}
	return true
}

// entryOf returns the address of the function that contains pc, or 0.
func entryOf(pc uintptr) uintptr {
	if f := runtime.FuncForPC(pc); f != nil {
		return f.Entry()
	}
	return 0
}
