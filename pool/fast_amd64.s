// Get and put without a pin: see fast_amd64.go.
//
// They are called as Go functions call each other, with arguments in registers
// and the goroutine in R14. Where they go on in a Go function, the arguments
// are in their registers again.

//go:build !race && !freehold_portable

#include "go_asm.h"
#include "textflag.h"

// STACK sets stack to that of the processor that this runs on, or jumps to none.
#define STACK(b, stack, none) \
	MOVQ const_goroutineM(R14), stack \
	MOVQ const_mProcessor(stack), stack \
	MOVL const_processor(stack), stack \
	CMPL stack, $const_maxPlaces \
	JAE  none \
	MOVQ Blocks_stacks(b)(stack*8), stack \
	TESTQ stack, stack \
	JEQ  none

// GOON jumps to the Go function in a variable.
#define GOON(variable) \
	MOVQ variable(SB), DX \
	MOVQ (DX), R8 \
	JMP  R8

// POP takes the last block off a stack: R11 is its address. It changes
// nothing before it jumps to none.
#define POP(stack, none) \
	MOVQ stack_n(stack), DX \
	SUBQ $1, DX \
	JCS  none \
	MOVQ DX, R8 \
	SHLQ $4, R8 \
	MOVQ (stack_entries+entry_state)(stack)(R8*1), R9 \
	CMPB (R9), $const_stateFree \
	JNE  none \
	MOVB $const_stateLive, (R9) \
	MOVQ DX, stack_n(stack) \
	MOVQ (stack_entries+entry_addr)(stack)(R8*1), R11

// RETURN returns the block at R11 from the pool in SI, cleared by stores that may
// overlap: the end of a loop would be hard to predict. The block is the caller's
// already.
#define RETURN(small, tiny, large, done) \
	MOVQ R11, AX \
	MOVQ Blocks_zero(SI), R9 \
	XORL BX, BX \
	XORL CX, CX \
	CMPQ R9, $32 \
	JCS  small \
	CMPQ R9, $const_maxZero \
	JHI  large \
	MOVUPS X15, (AX) \
	MOVUPS X15, 16(AX) \
	MOVUPS X15, -32(AX)(R9*1) \
	MOVUPS X15, -16(AX)(R9*1) \
	RET \
small: \
	TESTQ R9, R9 \
	JEQ  done \
	CMPQ R9, $16 \
	JCS  tiny \
	MOVUPS X15, (AX) \
	MOVUPS X15, -16(AX)(R9*1) \
done: \
	RET \
tiny: \
	MOVQ BX, (AX) \
	RET \
large: \
	MOVQ R9, BX \
	GOON(·clearing)

// FIND looks for the live block at BX in the pool in SI: R9 is its chunk's slot, DX
// its index and R10 where its state stands. It jumps to none if that is not in
// the first slot that it may be in. AX keeps its value, R13 is lost.
#define FIND(none) \
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
	MOVQ slot_states(R9), R10 \
	ADDQ DX, R10 \
	CMPB (R10), $const_stateLive \
	JNE  none

// ROOM sets R11 to where the next entry of a stack is, or jumps to none.
#define ROOM(stack, none) \
	MOVQ stack_n(stack), R11 \
	CMPQ R11, stack_room(stack) \
	JCC  none \
	SHLQ $4, R11 \
	ADDQ stack, R11

// PUSH puts the block that FIND found on a stack, at R11.
#define PUSH(stack) \
	MOVB $const_stateFree, (R10) \
	MOVQ BX, (stack_entries+entry_addr)(R11) \
	MOVQ R10, (stack_entries+entry_state)(R11) \
	INCQ stack_n(stack) \
	RET

// func(b *Blocks) (unsafe.Pointer, error)
//
//	b AX -> AX, BX CX
TEXT getFast<>(SB), NOSPLIT, $0-0
	MOVQ AX, SI
	STACK(AX, CX, plain)
	POP(CX, plain)
	RETURN(small, tiny, large, done)
plain:
	GOON(·plainGet)

// func(b *Blocks, p unsafe.Pointer), for blocks with generations
//
//	b AX, p BX
TEXT putFast<>(SB), NOSPLIT, $0-0
	MOVQ AX, SI
	FIND(plain)
	STACK(AX, CX, plain)
	ROOM(CX, plain)
	MOVQ slot_gens(R9), R9
	INCQ (R9)(DX*8)
	PUSH(CX)
plain:
	GOON(·plainPut)

// func(b *Blocks, size, align int) ([]byte, error)
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
	STACK(AX, CX, plain)
	POP(CX, plain)
	MOVQ R11, AX
	MOVQ BX, CX
	XORL DI, DI
	XORL SI, SI
	RET
plain:
	MOVQ DI, CX
	GOON(·plainAlloc)

// func(b *Blocks, r []byte)
//
//	b AX, r BX CX DI
TEXT freeFast<>(SB), NOSPLIT, $0-0
	CMPQ CX, DI
	JNE  plain
	LEAQ -1(CX), DX
	CMPQ DX, Blocks_bytes(AX)
	JCC  plain
	MOVQ AX, SI
	FIND(plain)
	STACK(AX, R8, plain)
	ROOM(R8, plain)
	PUSH(R8)
plain:
	GOON(·plainFree)

// func(c *cache) (unsafe.Pointer, error)
//
//	c AX -> AX, BX CX
TEXT cacheGetFast<>(SB), NOSPLIT, $0-0
	MOVQ cache_blocks(AX), SI
	POP(AX, plain)
	RETURN(small, tiny, large, done)
plain:
	GOON(·plainCacheGet)

// func(c *cache, p unsafe.Pointer)
//
//	c AX, p BX
TEXT cachePutFast<>(SB), NOSPLIT, $0-0
	MOVQ cache_blocks(AX), SI
	FIND(plain)
	ROOM(AX, plain)
	MOVQ slot_gens(R9), R9
	TESTQ R9, R9
	JEQ  push
	INCQ (R9)(DX*8)
push:
	PUSH(AX)
plain:
	GOON(·plainCachePut)

// func(b *Blocks) (unsafe.Pointer, error)
//
// Returns b if the goroutine is where getFast expects it.
TEXT probeGet<>(SB), NOSPLIT, $0-0
	MOVQ (TLS), R8
	CMPQ R14, R8
	JEQ  yes
	XORL AX, AX
yes:
	XORL BX, BX
	XORL CX, CX
	RET

// func(b *Blocks, size, align int) ([]byte, error)
//
// Returns b, size and size+align.
TEXT probeAlloc<>(SB), NOSPLIT, $0-0
	ADDQ BX, CX
	XORL DI, DI
	XORL SI, SI
	RET

// func(b *Blocks, r []byte) uintptr
//
// Returns a sum of the arguments in which each has a weight.
TEXT probeFree<>(SB), NOSPLIT, $0-0
	LEAQ (AX)(BX*2), AX
	LEAQ (AX)(CX*4), AX
	LEAQ (AX)(DI*8), AX
	RET

// func entryPoints() (get, put, alloc, free, cacheGet, cachePut, probeGet, probeAlloc, probeFree uintptr)
TEXT ·entryPoints(SB), NOSPLIT, $0-72
	LEAQ getFast<>(SB), AX
	MOVQ AX, get+0(FP)
	LEAQ putFast<>(SB), AX
	MOVQ AX, put+8(FP)
	LEAQ allocFast<>(SB), AX
	MOVQ AX, alloc+16(FP)
	LEAQ freeFast<>(SB), AX
	MOVQ AX, free+24(FP)
	LEAQ cacheGetFast<>(SB), AX
	MOVQ AX, cacheGet+32(FP)
	LEAQ cachePutFast<>(SB), AX
	MOVQ AX, cachePut+40(FP)
	LEAQ probeGet<>(SB), AX
	MOVQ AX, probeGet+48(FP)
	LEAQ probeAlloc<>(SB), AX
	MOVQ AX, probeAlloc+56(FP)
	LEAQ probeFree<>(SB), AX
	MOVQ AX, probeFree+64(FP)
	RET
