// See runtime.go.

//go:build !race && !freehold_portable && !asan

#include "go_asm.h"
#include "textflag.h"

// The func's own address is in R26, its five arguments in R0 to R4.
TEXT jump<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVD closure_leaf(R26), R16
	MOVD g, R4
	JMP  (R16)

// func entry() uintptr
TEXT ·entry(SB), NOSPLIT, $0-8
	MOVD $jump<>(SB), R0
	MOVD R0, ret+0(FP)
	RET

// func stackGuard() *uintptr
TEXT ·stackGuard(SB), NOSPLIT, $0-8
	ADD  $16, g, R0
	MOVD R0, ret+0(FP)
	RET
