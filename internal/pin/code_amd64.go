//go:build !race && !freehold_portable && !asan

package pin

import "encoding/binary"

// procPinCode is runtime.procPin, which shows where the runtime keeps the processor's number.
// procPinMask leaves out where in an m the count of pins is, and the p.
var (
	procPinCode = [...]byte{
		0x49, 0x8b, 0x4e, 0x30, // MOVQ g_m(R14), CX
		0xff, 0x81, 0, 0, 0, 0, // INCL m_locks(CX)
		0x48, 0x8b, 0x89, 0, 0, 0, 0, // MOVQ m_p(CX), CX
		0x48, 0x63, 0x01, // MOVLQSX p_id(CX), AX
		0xc3, // RET
	}
	procPinMask = [...]byte{
		0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0, 0, 0, 0,
		0xff, 0xff, 0xff, 0, 0, 0, 0,
		0xff, 0xff, 0xff,
		0xff,
	}
)

// offsetIn returns where procPin with that code finds the p in an m.
func offsetIn(code []byte) uintptr { return uintptr(binary.LittleEndian.Uint32(code[13:])) }

const codeStep = 1

// callAt returns what the instruction at pc calls, if it is a CALL with an offset.
func callAt(pc uintptr) (target uintptr, is bool) {
	code := (*[5]byte)(pointer(pc))
	return pc + 5 + uintptr(int32(binary.LittleEndian.Uint32(code[1:]))), code[0] == 0xe8
}
