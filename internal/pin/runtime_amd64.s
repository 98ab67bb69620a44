// See runtime_amd64.go.

//go:build !race && !freehold_portable && !asan

#include "go_asm.h"
#include "textflag.h"

// func(a, b, c, d, e uintptr) (v, w, x, y, z uintptr)
//
// Each result is a sum that no other order of the arguments gives, if g and 0 are
// where they should be.
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

// func() uintptr
//
// The processor that it runs on.
TEXT processor<>(SB), NOSPLIT, $0-0
	MOVQ const_GM(R14), AX
	MOVQ const_MP(AX), AX
	MOVL const_PID(AX), AX
	RET

// func(word *uint64, wait, stay uintptr) (change uint64, asked bool)
//
// It waits until the runtime has asked the goroutine to yield, at most wait
// rounds, stays for as many more, and returns by how much the word has changed
// meanwhile. For the test that it is not preempted.
TEXT linger<>(SB), NOSPLIT, $0-0
	MOVQ (AX), R8
waiting:
	CMPQ 16(R14), $-1314 // g.stackguard0 == stackPreempt
	JEQ  staying
	PAUSE
	DECQ BX
	JNE  waiting
	RET
staying:
	PAUSE
	DECQ CX
	JNE  staying
	MOVQ (AX), AX
	SUBQ R8, AX
	MOVL $1, BX
	RET

DATA functions<>+0(SB)/8, $probe<>(SB)
DATA functions<>+8(SB)/8, $processor<>(SB)
DATA functions<>+16(SB)/8, $linger<>(SB)
GLOBL functions<>(SB), RODATA, $24

// func entries() *uintptr
TEXT ·entries(SB), NOSPLIT, $0-8
	LEAQ functions<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET
