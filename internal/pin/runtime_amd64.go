// Runtime: what assembly needs to do without the pin.
//
// A goroutine is never preempted inside an assembly function that calls
// nothing. It stays on its processor to the end, and whoever stops the world
// waits for it: what procPin does, for free. Such functions are called as Go
// functions call each other, by registers: by way of the stack, as Go calls
// assembly that it has a declaration of, costs as much as the pin.
//
// Nothing in the language promises that, so the assembly runs only on the systems
// and with the versions of Go that were tested. TestKnown says how to test a new
// version; Obstacle says why assembly does not run.

//go:build !race && !freehold_portable && !asan

package pin

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"
)

// tested are the versions of Go, patch releases included, and testedSystems the
// systems, on which assembly was found not to be preempted.
var (
	tested        = []string{"go1.26", "go1.27"}
	testedSystems = []string{"linux"}
)

var (
	version = runtime.Version()
	system  = runtime.GOOS
)

// Where the runtime keeps the processor's number: g, which assembly has in R14,
// holds the address of an m, that of a p, and that its number.
const (
	GM  = 0x30 // g.m
	MP  = 0xd0 // m.p
	PID = 0    // p.id, 4 bytes
)

// Where assembly finds things in a Table. It need not compare the number of one of the
// FirstSlots with the length: they are in each table, nil where New did not make it.
const (
	TableLen   = unsafe.Offsetof(Table[byte]{}.length) // the number of slots, 8 bytes
	TableSlots = unsafe.Offsetof(Table[byte]{}.first)  // the slots, 8 bytes each
	FirstSlots = firstSlots
)

// Obstacle returns "" if assembly may run, else the reason why not. It may run on a
// tested system with a tested version of Go, if the runtime and the compiler are as
// the constants say and as assembly expects: integer arguments and results in AX,
// BX, CX, DI, SI in this order, g in R14, 0 in X15.
func Obstacle() string {
	switch {
	case !slices.Contains(testedSystems, system):
		return fmt.Sprintf("%s is none of the tested systems, %s", system, strings.Join(testedSystems, ", "))
	case !knownVersion():
		return fmt.Sprintf("%s is none of the tested versions, %s", version, strings.Join(tested, ", "))
	case !knownCompiler():
		return "the compiler passes arguments otherwise than that of the tested versions"
	case !knownRuntime() || !findsProcessor():
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

// Assembly returns the assembly functions whose addresses are in entries, one for
// each field of F, in their order; or plain where assembly must not run. F is a
// struct of funcs. entries must stay as they are.
func Assembly[F any](plain F, entries *uintptr) F {
	if Obstacle() != "" {
		return plain
	}
	return functionsAt[F](entries)
}

// functionsAt is Assembly. A func is the address of a word with the address of
// its code.
func functionsAt[F any](entries *uintptr) (f F) {
	words := unsafe.Slice((**uintptr)(unsafe.Pointer(&f)), unsafe.Sizeof(f)/unsafe.Sizeof(entries))
	code := unsafe.Slice(entries, len(words))
	for i := range words {
		words[i] = &code[i]
	}
	return f
}

// code is runtime.procPin, which shows where these are. The count of pins may
// stand anywhere.
var code = []byte{
	0x49, 0x8b, 0x4e, GM, // MOVQ g_m(R14), CX
	0xff, 0x81, 0, 0, 0, 0, // INCL m_locks(CX)
	0x48, 0x8b, 0x89, MP, 0x00, 0x00, 0x00, // MOVQ m_p(CX), CX
	0x48, 0x63, 0x01, // MOVLQSX p_id(CX), AX
	0xc3, // RET
}

func knownRuntime() bool {
	pin := procPin
	got := unsafe.Slice((*byte)(**(**unsafe.Pointer)(unsafe.Pointer(&pin))), len(code))
	return bytes.Equal(got[:6], code[:6]) && bytes.Equal(got[10:], code[10:])
}

// entries returns the addresses of the functions in runtime_amd64.s.
func entries() *uintptr

var assembly = functionsAt[struct {
	probe     func(a, b, c, d, e uintptr) (v, w, x, y, z uintptr)
	processor func() uintptr
	linger    func(word *atomic.Uint64, wait, stay uintptr) (change uint64, asked bool)
}](entries())

func knownCompiler() bool {
	v, w, x, y, z := assembly.probe(1, 20, 300, 4000, 50000)
	return v == 50000+1 && w == 1000+20 && x == 20000+300 && y == 300000+4000 && z == 4000+50000
}

func findsProcessor() bool {
	defer procUnpin()
	return uintptr(procPin()) == assembly.processor()
}
