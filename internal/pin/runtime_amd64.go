// Runtime: what assembly needs to find the processor that it runs on.
//
// A goroutine is never preempted inside an assembly function that calls
// nothing. It stays on its processor to the end, and whoever stops the world
// waits for it: what procPin does, for free.

//go:build !race && !freehold_portable

package pin

import (
	"bytes"
	"unsafe"
)

// Where the runtime keeps the processor's number: g, which assembly has in R14,
// holds the address of an m, that of a p, and that its number.
const (
	GM  = 0x30 // g.m
	MP  = 0xd0 // m.p
	PID = 0    // p.id, 4 bytes
)

// code is runtime.procPin, which shows where these are. The count of pins may
// stand anywhere.
var code = []byte{
	0x49, 0x8b, 0x4e, GM, // MOVQ g_m(R14), CX
	0xff, 0x81, 0, 0, 0, 0, // INCL m_locks(CX)
	0x48, 0x8b, 0x89, MP, 0x00, 0x00, 0x00, // MOVQ m_p(CX), CX
	0x48, 0x63, 0x01, // MOVLQSX p_id(CX), AX
	0xc3, // RET
}

// Known reports whether the runtime is as the constants say. Where it is not,
// on another system or with another version of Go, assembly that rests on them
// must not run.
func Known() bool {
	pin := procPin
	got := unsafe.Slice((*byte)(**(**unsafe.Pointer)(unsafe.Pointer(&pin))), len(code))
	return bytes.Equal(got[:6], code[:6]) && bytes.Equal(got[10:], code[10:])
}
