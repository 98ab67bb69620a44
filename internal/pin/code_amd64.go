//go:build !race && !freehold_portable && !asan

package pin

import "encoding/binary"

// procPinCode is the machine code of runtime.procPin, which loads the processor's number.
// procPinMask masks out the offsets in an m of the lock count and of the p.
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

// offsetIn returns the offset of the p in an m, from the code of procPin.
func offsetIn(code []byte) uintptr { return uintptr(binary.LittleEndian.Uint32(code[13:])) }

const codeStep = 1

// callAt returns the target of the instruction at pc, if that is a CALL with an offset.
func callAt(pc uintptr) (target uintptr, is bool) {
	code := (*[5]byte)(pointer(pc))
	return pc + 5 + uintptr(int32(binary.LittleEndian.Uint32(code[1:]))), code[0] == 0xe8
}
