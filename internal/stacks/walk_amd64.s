// Walk: the return addresses on the stack, by frame pointers.
//
// Every Go function that calls others pushes BP and points it there:
//
//	BP -> | the caller's BP | return address |
//
// The walk ends when BP leaves the goroutine's stack, whose bounds are the first two words of g, or
// does not grow. So it reads only that stack, even if BP is garbage. The stack does not move
// meanwhile: assembly is not preempted (see package pin).

//go:build !race && !freehold_portable && !asan

#include "go_asm.h"
#include "textflag.h"

// func() uint64
TEXT walk<>(SB), NOSPLIT, $0-0
	MOVQ $const_hashSeed, AX
	MOVQ $const_hashMul, BX
	MOVQ BP, CX
	MOVQ 0(R14), DI        // g.stack.lo, the lowest that BP may be
	MOVQ 8(R14), SI
	SUBQ $16, SI           // the highest
	MOVL $const_maxFrames, R8
frame:
	CMPQ CX, DI
	JCS  done
	CMPQ CX, SI
	JHI  done
	XORQ 8(CX), AX
	IMULQ BX, AX
	ROLQ $32, AX
	LEAQ 1(CX), DI
	MOVQ 0(CX), CX
	DECL R8
	JNE  frame
done:
	RET

DATA functions<>+0(SB)/8, $walk<>(SB)
GLOBL functions<>(SB), RODATA, $8

// func entries() *uintptr
TEXT ·entries(SB), NOSPLIT, $0-8
	LEAQ functions<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET
