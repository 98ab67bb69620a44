// Assembly without the pin: like leaves, it is not preempted. It is called through funcs, with
// arguments in registers. Go calls declared assembly with arguments on the stack, which costs as
// much as the pin.

//go:build !race && !freehold_portable && !asan

package pin

import "unsafe"

// The offsets on the path g.m.p.id to the processor's number. Assembly has g in R14.
const (
	GM  = 0x30 // g.m
	MP  = 0xd0 // m.p
	PID = 0    // p.id, 4 bytes
)

// The offsets of a Table's parts. Assembly need not compare the number of one of the FirstSlots
// with the length: every table has these slots, all nil if New did not make the table.
const (
	TableLen   = unsafe.Offsetof(Table[byte]{}.length) // the number of slots, 8 bytes
	TableSlots = unsafe.Offsetof(Table[byte]{}.first)  // the slots, 8 bytes each
	FirstSlots = firstSlots
)

// Assembly returns assembly functions as F, a struct of funcs: entries holds the address of one
// for each field, in order, and must never change. If assembly must not run, it returns plain.
func Assembly[F any](plain F, entries *uintptr) F {
	if !AssemblyRuns() {
		return plain
	}
	return functionsAt[F](entries)
}

// AssemblyRuns reports whether Assembly returns assembly.
func AssemblyRuns() bool { return Obstacle() == "" && mP == MP && knownCompiler() }

// functionsAt is Assembly without the checks. A func value is the address of a word that holds
// the address of its code.
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

// knownCompiler reports whether the compiler has the calling convention of the assembly: integer
// arguments and results in AX, BX, CX, DI, SI in this order, g in R14, 0 in X15.
func knownCompiler() bool {
	v, w, x, y, z := assembly.probe(1, 20, 300, 4000, 50000)
	return v == 50000+1 && w == 1000+20 && x == 20000+300 && y == 300000+4000 && z == 4000+50000
}
