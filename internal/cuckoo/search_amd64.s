// Search in assembly: see search.go. The function follows Go's calling convention: arguments are in
// AX and BX, results in AX, BX and CX.

//go:build !race && !freehold_portable && !asan

#include "go_asm.h"
#include "textflag.h"

// func entries() *uintptr
TEXT ·entries(SB), NOSPLIT, $0-8
	LEAQ functions<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET

DATA functions<>+0(SB)/8, $search<>(SB)
GLOBL functions<>(SB), RODATA, $8

// LINEAR sets i to the bucket of x, as linear does. DX is the number of buckets, and R8 is 2*high-1.
#define LINEAR(x, i) \
	MOVL R8, DI \
	SHRL $1, DI \
	MOVL x, i \
	ANDL x, DI \
	ANDL R8, i \
	CMPL i, DX \
	CMOVLCC DI, i

// TAGS sets a to the tags of bucket i: eight words, the note's among them. SI is the address of the
// chunks' addresses, CX is perBits, and R9 is the mask of its bits. It changes DI, R11 and b to d.
#define TAGS(i, a, b, c, d) \
	MOVL i, DI \
	SHRL CX, DI \
	MOVQ (SI)(DI*8), R11 \
	MOVL i, DI \
	ANDL R9, DI \
	SHLQ $6, DI \
	ADDQ DI, R11 \
	MOVOU 0(R11), a \
	MOVOU 16(R11), b \
	MOVOU 32(R11), c \
	MOVOU 48(R11), d \
	SHUFPS $0xDD, b, a /* the high halves of four slots */ \
	SHUFPS $0xDD, d, c \
	PSRLL $(const_tagShift-32), a \
	PSRLL $(const_tagShift-32), c \
	PCMPEQL X0, a \
	PCMPEQL X0, c \
	PACKSSLW c, a

// func(ix *Index, tag uint32) (one, two, matches uint32)
TEXT search<>(SB), NOSPLIT, $0-0
	MOVL Index_buckets(AX), DX
	TESTL DX, DX
	JZ none
	MOVQ Index_chunks(AX), SI // the first field of a blocks.List
	MOVQ (SI), SI             // of a slice
	MOVL BX, BX
	MOVQ $0x9E3779B97F4A7C15, R10
	IMULQ BX, R10
	SHRQ $32, R10
	ANDL $const_tagMask, R10
	BSRL DX, CX
	MOVL $2, R8
	SHLL CX, R8
	DECL R8
	MOVQ Index_perBits(AX), CX
	MOVL $1, R9
	SHLL CX, R9
	DECL R9
	MOVQ BX, X0
	PSHUFD $0, X0, X0
	LINEAR(BX, AX)
	TAGS(AX, X1, X2, X3, X4)
	LINEAR(R10, BX)
	TAGS(BX, X5, X6, X7, X8)
	PACKSSWB X5, X1
	PMOVMSKB X1, CX
	ANDL $const_slotBits, CX
	RET
none:
	XORL AX, AX
	XORL BX, BX
	XORL CX, CX
	RET
