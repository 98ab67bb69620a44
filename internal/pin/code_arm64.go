//go:build !race && !freehold_portable && !asan

package pin

import "encoding/binary"

// procPinCode is runtime.procPin, which shows where the runtime keeps the processor's number.
// procPinMask leaves out where in an m the count of pins is, and the p.
var (
	procPinCode = [...]byte{
		0x81, 0x1b, 0x40, 0xf9, // MOVD g_m(g), R1
		0x22, 0, 0x80, 0xb9, // MOVW m_locks(R1), R2
		0x42, 0x04, 0x00, 0x91, // ADD $1, R2
		0x22, 0, 0x00, 0xb9, // MOVW R2, m_locks(R1)
		0x21, 0, 0x40, 0xf9, // MOVD m_p(R1), R1
		0x20, 0x00, 0x80, 0xb9, // MOVW p_id(R1), R0
		0xc0, 0x03, 0x5f, 0xd6, // RET
	}
	procPinMask = [...]byte{
		0xff, 0xff, 0xff, 0xff,
		0xff, 0x03, 0xc0, 0xff,
		0xff, 0xff, 0xff, 0xff,
		0xff, 0x03, 0xc0, 0xff,
		0xff, 0x03, 0xc0, 0xff,
		0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0xff, 0xff,
	}
)

// offsetIn returns where procPin with that code finds the p in an m: the instruction has it
// in 12 bits, in units of 8 bytes.
func offsetIn(code []byte) uintptr {
	return uintptr(binary.LittleEndian.Uint32(code[16:])>>10&0xfff) * 8
}

const codeStep = 4

// callAt returns what the instruction at pc calls, if it is a BL.
func callAt(pc uintptr) (target uintptr, is bool) {
	code := *(*uint32)(pointer(pc))
	return pc + uintptr(int32(code<<6)>>4), code>>26 == 0x25
}
