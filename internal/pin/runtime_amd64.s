// See runtime.go and runtime_amd64.go.

//go:build !race && !freehold_portable && !asan

#include "go_asm.h"
#include "textflag.h"

// func(a, b, c, d, e uintptr) (v, w, x, y, z uintptr)
//
// Each result is a sum that only this order of the arguments gives, and only if g and 0 are in their
// registers.
TEXT probe<>(SB), NOSPLIT, $0-0
	MOVQ (TLS), R8
	CMPQ R14, R8
	JNE  no
	MOVQ X15, R8
	TESTQ R8, R8
	JNE  no
	MOVQ AX, R8
	MOVQ BX, R9
	MOVQ CX, R10
	MOVQ DI, R11
	ADDQ SI, AX            // e + a
	IMUL3Q $1000, R8, BX
	ADDQ R9, BX            // 1000 a + b
	IMUL3Q $1000, R9, CX
	ADDQ R10, CX           // 1000 b + c
	IMUL3Q $1000, R10, DI
	ADDQ R11, DI           // 1000 c + d
	ADDQ R11, SI           // d + e
	RET
no:
	XORL AX, AX
	RET

DATA functions<>+0(SB)/8, $probe<>(SB)
GLOBL functions<>(SB), RODATA, $8

// func entries() *uintptr
TEXT ·entries(SB), NOSPLIT, $0-8
	LEAQ functions<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// The func's own address is in DX, its five arguments in AX, BX, CX, DI and SI, g in R14.
TEXT jump<>(SB), NOSPLIT, $0-0
	MOVQ closure_leaf(DX), R8
	MOVQ R14, SI
	JMP  R8

// func entry() uintptr
TEXT ·entry(SB), NOSPLIT, $0-8
	LEAQ jump<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// func stackGuard() *uintptr
TEXT ·stackGuard(SB), NOSPLIT, $0-8
	MOVQ (TLS), AX
	ADDQ $16, AX
	MOVQ AX, ret+0(FP)
	RET
