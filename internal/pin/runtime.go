// Runtime: what a fast path needs to do without the pin.
//
// The compiler marks every instruction of a //go:nosplit function as none at which the
// runtime may preempt a goroutine (IsUnsafe in cmd/compile/internal/liveness,
// isAsyncSafePoint in runtime/preempt.go). So a goroutine keeps its processor in such a
// function, if that calls nothing and has no frame, whose set-up is not marked. A leaf is
// that kind of function:
//
//	caller --> entry, in assembly: loads the processor's number --jump--> leaf, in Go --> caller
//
// Assembly is not preempted either. So from the load of the number to the return of the
// leaf a goroutine has what belongs to its processor to itself: what procPin does, for free.
//
// Nothing in the language promises that. So it is done only with the versions of Go and on
// the systems that are listed here, and only if the code of procPin and of each leaf is as
// expected: builds with -N, with checkptr or for fuzzing have leaves with frames.
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

// tested are the versions of Go, patch releases included, with which goroutines were found
// not to be preempted in leaves, and systems those whose runtime is the same in that.
var (
	tested  = []string{"go1.26", "go1.27"}
	systems = []string{"linux", "windows", "darwin", "freebsd", "netbsd", "dragonfly"}
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

// Unpinned returns a function that calls leaf with the number of the processor, like
// Holders.Enter's, as its last argument, whatever that of the call is. The goroutine stays
// on that processor until leaf returns. If there is an obstacle, or leaf has a frame,
// Unpinned returns pinned instead. It is for variables that are set before main begins.
//
// leaf has four words as arguments, and an int. It is declared //go:nosplit and calls
// nothing; it takes few enough variables to hold them all in registers; and it stores no
// pointers into Go memory, so that it owes the collector no write barrier.
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
	mOfP  uintptr // where an m has its p
}

// unpinned is Unpinned without a check.
func unpinned[F any](leaf uintptr) F {
	c := &closure{entry(), leaf, mOfP()}
	return *(*F)(unsafe.Pointer(&c))
}

// pointer turns the address of code into a pointer.
func pointer(code uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&code)) }

// codeOf returns the address of a func's code.
func codeOf[F any](f F) uintptr { return **(**uintptr)(unsafe.Pointer(&f)) }

// entry returns the address of load, which finds the processor's number and jumps to a leaf.
func entry() uintptr

// stackGuard returns the address of the word by which the runtime asks the goroutine to yield.
// It is for a test.
func stackGuard() *uintptr

// echo is a leaf.
//
//go:nosplit
//go:noinline
func echo(a, b, c, d uintptr, slot int) (v, w, x, y uintptr, processor int) { return a, b, c, d, slot }

// findsProcessor reports whether entry hands its arguments and the processor's number on.
func findsProcessor() bool {
	f := unpinned[func(a, b, c, d uintptr, slot int) (v, w, x, y uintptr, processor int)](codeOf(echo))
	defer procUnpin()
	slot := procPin()
	v, w, x, y, processor := f(1, 20, 300, 4000, -1)
	return v == 1 && w == 20 && x == 300 && y == 4000 && processor == slot
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
