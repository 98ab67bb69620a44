//go:build freehold_ranks

#include "textflag.h"

// func g() uintptr
TEXT ·g(SB), NOSPLIT, $0-8
	MOVQ (TLS), AX
	MOVQ AX, ret+0(FP)
	RET
