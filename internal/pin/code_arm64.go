//go:build !race && !freehold_portable && !asan

package pin

import "encoding/binary"

// procPinCode is the machine code of runtime.procPin, which loads the processor's number.
// procPinMask masks out the offsets in an m of the lock count and of the p.
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

// offsetIn returns the offset of the p in an m, from the code of procPin: 12 bits of an
// instruction hold it, in units of 8 bytes.
func offsetIn(code []byte) uintptr {
	return uintptr(binary.LittleEndian.Uint32(code[16:])>>10&0xfff) * 8
}

const codeStep = 4

// callAt returns the target of the instruction at pc, if that is a BL.
func callAt(pc uintptr) (target uintptr, is bool) {
	code := *(*uint32)(pointer(pc))
	return pc + uintptr(int32(code<<6)>>4), code>>26 == 0x25
}
