// Get and put without a pin: see fast_amd64.go.
//
// They use Go's internal calling convention, with arguments in registers and g in R14. They ignore
// at, and their callers ignore the results of put and free. Before a jump to a Go function the
// arguments are in their registers again.

//go:build !race && !freehold_portable && !asan

#include "go_asm.h"
#include "textflag.h"

// STACK sets stack to the stack of the current processor. It is 0 in a zero Blocks, for which only
// get uses STACK. For a processor beyond the first slots it jumps to far, which must be a FAR.
#define STACK(b, stack, near, far) \
	MOVQ const_gM(R14), stack \
	MOVQ const_mP(stack), stack \
	MOVL const_pID(stack), stack \
	CMPL stack, $const_firstSlots \
	JAE  far \
near: \
	MOVQ (Blocks_stacks+const_tableSlots)(b)(stack*8), stack

// FAR goes back to near if the processor has a slot, or jumps to none.
#define FAR(b, stack, near, none) \
	CMPQ stack, (Blocks_stacks+const_tableLen)(b) \
	JCS  near \
	JMP  none

// GOON jumps to the Go function that a variable holds.
#define GOON(variable) \
	MOVQ variable(SB), DX \
	MOVQ (DX), R8 \
	JMP  R8

// POP takes the last block off a stack and sets R11 to its address. It jumps to none, without any
// change, if there is no free block.
#define POP(stack, none) \
	MOVQ stack_n(stack), DX \
	SUBQ $1, DX \
	JCS  none \
	MOVQ DX, R8 \
	SHLQ $4, R8 \
	MOVQ (stack_entries+entry_status)(stack)(R8*1), R9 \
	CMPL (R9), $const_statusFree \
	JNE  none \
	MOVL $const_statusLive, (R9) \
	MOVQ DX, stack_n(stack) \
	MOVQ (stack_entries+entry_addr)(stack)(R8*1), R11

// FIND sets R10 to the address of the status of the live block at BX in the pool in SI. It jumps to
// none if the chunk is not in its first slot of the hash table, or if the block came through a cache.
// AX keeps its value, R13 is clobbered.
#define FIND(shift, none) \
	MOVQ AX, R13 \
	MOVQ Blocks_table(SI), R8 \
	MOVQ Blocks_chunkMask(SI), R10 \
	ANDQ BX, R10 /* the base */ \
	MOVQ $const_hashFactor, R9 \
	IMULQ R10, R9 \
	SHRQ $(32-const_slotShift), R9 \
	ANDQ table_mask(R8), R9 \
	ADDQ table_slots(R8), R9 \
	CMPQ slot_base(R9), R10 \
	JNE  none \
	/* off * recip: above the index, below the rest, which is nothing if < recip. */ \
	MOVQ BX, R11 \
	SUBQ R10, R11 \
	MOVQ Blocks_recip(SI), AX \
	MULQ R11 \
	MOVQ AX, R12 \
	MOVQ R13, AX \
	CMPQ R12, Blocks_recip(SI) \
	JCC  none \
	SHLQ $shift, DX \
	MOVQ slot_statuses(R9), R10 \
	ADDQ DX, R10 \
	CMPL (R10), $const_statusLive \
	JNE  none

// ROOM sets R11 to the address of the next free entry of a stack, or jumps to none.
#define ROOM(stack, none) \
	MOVQ stack_n(stack), R11 \
	CMPQ R11, stack_capacity(stack) \
	JCC  none \
	SHLQ $4, R11 \
	ADDQ stack, R11

// PUSH puts the block that FIND found into the entry at R11.
#define PUSH(stack) \
	MOVL $const_statusFree, (R10) \
	MOVQ BX, (stack_entries+entry_addr)(R11) \
	MOVQ R10, (stack_entries+entry_status)(R11) \
	INCQ stack_n(stack) \
	RET

// func(b *Blocks, _, _, _, at uintptr) (unsafe.Pointer, error)
//
//	b AX -> AX, BX CX
TEXT getFast<>(SB), NOSPLIT, $0-0
	STACK(AX, CX, near, far)
	TESTQ CX, CX
	JEQ  plain
	POP(CX, plain)
	MOVQ R11, AX
	XORL BX, BX
	XORL CX, CX
	RET
plain:
	GOON(·plain+functions_get)
far:
	FAR(AX, CX, near, plain)

// func(b *Blocks, p unsafe.Pointer, _, _, at uintptr) bool, for blocks with generations
//
//	b AX, p BX
TEXT putFast<>(SB), NOSPLIT, $0-0
	MOVQ AX, SI
	FIND(const_versionedShift, plain)
	STACK(AX, CX, near, far)
	ROOM(CX, plain)
	INCQ versionedStatus_gen(R10)
	PUSH(CX)
plain:
	GOON(·plain+functions_put)
far:
	FAR(AX, CX, near, plain)

// func(b *Blocks, size, align int, _, at uintptr) ([]byte, error)
//
//	b AX, size BX, align CX -> AX BX CX, DI SI
TEXT allocFast<>(SB), NOSPLIT, $0-0
	MOVQ CX, DI // for plain
	LEAQ -1(CX), DX
	TESTQ DX, CX
	JNE  plain
	CMPQ DX, Blocks_align(AX)
	JCC  plain
	LEAQ -1(BX), DX
	CMPQ DX, Blocks_bytes(AX)
	JCC  plain
	STACK(AX, CX, near, far)
	POP(CX, plain)
	MOVQ R11, AX
	MOVQ BX, CX
	XORL DI, DI
	XORL SI, SI
	RET
plain:
	MOVQ DI, CX
	GOON(·plain+functions_alloc)
far:
	FAR(AX, CX, near, plain)

// func(b *Blocks, r []byte, at uintptr) bool
//
//	b AX, r BX CX DI
TEXT freeFast<>(SB), NOSPLIT, $0-0
	CMPQ CX, DI
	JNE  plain
	LEAQ -1(CX), DX
	CMPQ DX, Blocks_bytes(AX)
	JCC  plain
	MOVQ AX, SI
	FIND(const_statusShift, plain)
	STACK(AX, R8, near, far)
	ROOM(R8, plain)
	PUSH(R8)
plain:
	GOON(·plain+functions_free)
far:
	FAR(AX, R8, near, plain)

DATA fastFunctions<>+functions_get(SB)/8, $getFast<>(SB)
DATA fastFunctions<>+functions_put(SB)/8, $putFast<>(SB)
DATA fastFunctions<>+functions_alloc(SB)/8, $allocFast<>(SB)
DATA fastFunctions<>+functions_free(SB)/8, $freeFast<>(SB)
GLOBL fastFunctions<>(SB), RODATA, $functions__size

// func entries() *uintptr
TEXT ·entries(SB), NOSPLIT, $0-8
	LEAQ fastFunctions<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET
