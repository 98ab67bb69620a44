// Alloc and Zeroed of a Shared without a pin: see shared_fast_amd64.go.
//
// They use Go's internal calling convention, with arguments in registers and g in R14. They ignore
// at. Before a jump to a Go function the arguments are in their registers again.

//go:build !race && !freehold_portable && !asan

#include "go_asm.h"
#include "textflag.h"

// CHUNK sets R9 to the current processor's chunk of this generation, or jumps to none. The Shared is
// in AX. For a processor beyond the first slots it jumps to far, which must be a FAR. The chunk of a
// zero Shared is nil.
#define CHUNK(near, far, none) \
	MOVQ const_gM(R14), R8 \
	MOVQ const_mP(R8), R8 \
	MOVL const_pID(R8), R8 \
	CMPL R8, $const_firstSlots \
	JAE  far \
near: \
	MOVQ (Shared_table+const_tableSlots)(AX)(R8*8), R9 \
	TESTQ R9, R9 \
	JEQ  none \
	MOVQ sharedChunk_generation(R9), R8 \
	CMPQ R8, Shared_generation(AX) \
	JNE  none

// FAR goes back to near if the processor has a slot, or jumps to none.
#define FAR(near, none) \
	CMPQ R8, (Shared_table+const_tableLen)(AX) \
	JCS  near \
	JMP  none

// TAKE cuts BX bytes at a multiple of CX off the chunk R9 and returns them, or
// jumps to none.
#define TAKE(none) \
	LEAQ -1(CX), DX \
	CMPQ DX, $const_maxFastAlign \
	JCC  none \
	TESTQ DX, CX \
	JNE  none \
	MOVQ (sharedChunk_mem+8)(R9), R10 \
	LEAQ -1(BX), R11 \
	CMPQ R11, R10 \
	JCC  none \
	MOVQ sharedChunk_at(R9), R11 \
	MOVQ sharedChunk_base(R9), R12 \
	LEAQ (R12)(R11*1), R13 \
	NEGQ R13 \
	ANDQ DX, R13 \
	ADDQ R13, R11 \
	LEAQ (R11)(BX*1), R13 \
	CMPQ R13, R10 \
	JHI  none \
	MOVQ R13, sharedChunk_at(R9) \
	INCQ sharedChunk_live(R9) \
	ADDQ BX, sharedChunk_liveBytes(R9) \
	LEAQ (R12)(R11*1), AX \
	MOVQ BX, CX \
	XORL DI, DI \
	XORL SI, SI \
	RET

// func(s *Shared, size, align int, _, at uintptr) ([]byte, error)
//
//	s AX, size BX, align CX -> AX BX CX, DI SI
TEXT allocFast<>(SB), NOSPLIT, $0-0
	CHUNK(near, far, plain)
	TAKE(plain)
plain:
	MOVQ ·plain+functions_alloc(SB), DX
	MOVQ (DX), R8
	JMP  R8
far:
	FAR(near, plain)

// func(s *Shared, size, align int, _, at uintptr) ([]byte, error)
TEXT zeroedFast<>(SB), NOSPLIT, $0-0
	CHUNK(near, far, plain)
	CMPB sharedChunk_zero(R9), $0
	JEQ  plain
	TAKE(plain)
plain:
	MOVQ ·plain+functions_zeroed(SB), DX
	MOVQ (DX), R8
	JMP  R8
far:
	FAR(near, plain)

DATA fastFunctions<>+functions_alloc(SB)/8, $allocFast<>(SB)
DATA fastFunctions<>+functions_zeroed(SB)/8, $zeroedFast<>(SB)
GLOBL fastFunctions<>(SB), RODATA, $functions__size

// func entries() *uintptr
TEXT ·entries(SB), NOSPLIT, $0-8
	LEAQ fastFunctions<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET
