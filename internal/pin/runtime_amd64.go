// Assembly that runs without the pin: it is not preempted, as leaves are not. Such functions
// are called as Go functions call each other, by registers: by way of the stack, as Go calls
// assembly that it has a declaration of, costs as much as the pin.

//go:build !race && !freehold_portable && !asan

package pin

import "unsafe"

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

// Assembly returns the assembly functions whose addresses are in entries, one for
// each field of F, in their order; or plain where assembly must not run. F is a
// struct of funcs. entries must stay as they are.
func Assembly[F any](plain F, entries *uintptr) F {
	if !AssemblyRuns() {
		return plain
	}
	return functionsAt[F](entries)
}

// AssemblyRuns reports whether Assembly returns assembly.
func AssemblyRuns() bool { return Obstacle() == "" && mP == MP && knownCompiler() }

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

// entries returns the addresses of the functions in runtime_amd64.s.
func entries() *uintptr

var assembly = functionsAt[struct {
	probe func(a, b, c, d, e uintptr) (v, w, x, y, z uintptr)
}](entries())

// knownCompiler reports whether the compiler is as assembly expects: integer arguments and
// results in AX, BX, CX, DI, SI in this order, g in R14, 0 in X15.
func knownCompiler() bool {
	v, w, x, y, z := assembly.probe(1, 20, 300, 4000, 50000)
	return v == 50000+1 && w == 1000+20 && x == 20000+300 && y == 300000+4000 && z == 4000+50000
}
