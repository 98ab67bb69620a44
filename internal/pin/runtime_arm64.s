// See runtime.go.

//go:build !race && !freehold_portable && !asan

#include "go_asm.h"
#include "textflag.h"

// The function's own address is in R26, its five arguments in R0 to R4, g in R28.
TEXT load<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVD closure_mOfP(R26), R17
	MOVD 48(g), R4   // g.m
	MOVD closure_leaf(R26), R16
	MOVD (R4)(R17), R4 // m.p
	MOVWU (R4), R4     // p.id
	JMP  (R16)

// func entry() uintptr
TEXT ·entry(SB), NOSPLIT, $0-8
	MOVD $load<>(SB), R0
	MOVD R0, ret+0(FP)
	RET

// func stackGuard() *uintptr
TEXT ·stackGuard(SB), NOSPLIT, $0-8
	ADD  $16, g, R0
	MOVD R0, ret+0(FP)
	RET
