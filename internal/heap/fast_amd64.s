// Alloc and Free without a pin: see fast_amd64.go.
//
// They are called as Go functions call each other, with arguments in registers
// and the goroutine in R14. Where they go on in a Go function, the arguments
// are in their registers again.

//go:build !race && !freehold_portable

#include "go_asm.h"
#include "textflag.h"

// CACHE sets cache to the cache of the processor that this runs on, or jumps to
// none.
#define CACHE(h, cache, none) \
	MOVQ const_gM(R14), cache \
	MOVQ const_mP(cache), cache \
	MOVL const_pID(cache), cache \
	CMPL cache, $const_maxPlaces \
	JAE  none \
	MOVQ Heap_caches(h)(cache*8), cache

// STATE sets state to the place of the state of the block of h at addr, and
// class to its class, or jumps to none. It changes R8, R11 and R12.
#define STATE(h, addr, state, class, none) \
	MOVQ addr, R8 \
	SUBQ ·addresses+(space_first+region_base)(SB), R8 \
	CMPQ R8, ·addresses+(space_first+region_used)(SB) \
	JAE  none \
	MOVQ R8, state \
	SHRQ $const_pageShift, state \
	MOVQ ·addresses+(space_first+region_tags)(SB), R11 \
	MOVQ (R11)(state*8), state \
	XORQ Heap_holder(h), state \
	TESTL $const_tagHolderMask, state \
	JNE  none \
	MOVBLZX state, class \
	LEAQ ·reciprocals(SB), R11 \
	MOVL (R11)(class*4), R11 \
	MOVL state, R12 \
	ANDL $const_tagPageMask, R12 \
	SHRL $(const_tagPageShift-const_pageShift), R12 \
	ANDL $((1<<const_pageShift)-1), R8 \
	ORL  R12, R8 \
	IMULQ R11, R8 \
	CMPL R8, R11 \
	JAE  none \
	SHRQ $32, R8 \
	SHRQ $(const_tagStatesShift-const_statesShift), state \
	ANDQ $~((1<<const_statesShift)-1), state \
	LEAQ (state)(R8*2), state

// PUSH puts the block at addr onto its class's magazine and returns, or jumps
// to none. It changes R8 and R11.
#define PUSH(h, addr, state, class, none) \
	CACHE(h, R8, none) \
	MOVQ cache_tops(R8)(class*8), R11 \
	CMPQ R11, cache_ends(R8)(class*8) \
	JEQ  none \
	MOVW $const_freeDirty, (state) \
	MOVQ addr, entry_addr(R11) \
	MOVQ state, entry_state(R11) \
	ADDQ $entry__size, R11 \
	MOVQ R11, cache_tops(R8)(class*8) \
	RET

// func(h *Heap, size, align int, zero bool) ([]byte, error)
//
//	h AX, size BX, align CX, zero DI -> AX BX CX, DI SI
TEXT allocFast<>(SB), NOSPLIT, $0-0
	// A size of 0 has class 0, of which no cache has a block.
	CMPQ BX, $const_maxSmall
	JHI  plain
	LEAQ -1(CX), DX
	CMPQ DX, $8
	JCC  wide
	TESTQ DX, CX
	JNE  plain
	LEAQ 7(BX), R8
class:
	SHRQ $3, R8
	LEAQ ·classOf(SB), R9
	MOVBLZX (R9)(R8*1), R8
	CACHE(AX, R9, plain)
	MOVQ cache_tops(R9)(R8*8), R10
	MOVQ (entry_state-entry__size)(R10), R11
	MOVWLZX (R11), R12
	CMPL R12, $const_freeZero
	JCS  plain
	MOVW BX, (R11)
	MOVQ (entry_addr-entry__size)(R10), AX
	SUBQ $entry__size, R10
	MOVQ R10, cache_tops(R9)(R8*8)
	// From here on the block is the caller's.
	TESTB DIB, DIB
	JNE  zero
done:
	MOVQ BX, CX
	XORL DI, DI
	XORL SI, SI
	RET
wide:
	CMPQ DX, $const_maxAlign
	JCC  plain // an alignment of 0 too
	TESTQ DX, CX
	JNE  plain
	LEAQ (BX)(DX*1), R8
	NOTQ DX
	ANDQ DX, R8 // a multiple of 16 at least, so there is nothing to round up
	JMP  class
zero:
	CMPL R12, $const_freeZero
	JEQ  done
	MOVQ ·cleared(SB), DX
	MOVQ (DX), R8
	JMP  R8
plain:
	MOVQ ·plainAlloc(SB), DX
	MOVQ (DX), R8
	JMP  R8

// func(h *Heap, b []byte)
//
//	h AX, b BX CX DI
TEXT freeFast<>(SB), NOSPLIT, $0-0
	// The state of a free block is larger than maxSmall.
	CMPQ CX, $const_maxSmall
	JHI  plain
	PREFETCHT0 (BX)
	STATE(AX, BX, R9, R10, plain)
	MOVWLZX (R9), R12
	CMPQ R12, CX
	JNE  plain
	PUSH(AX, BX, R9, R10, plain)
plain:
	MOVQ ·plainFree(SB), DX
	MOVQ (DX), R8
	JMP  R8

// func(h *Heap, p unsafe.Pointer)
//
//	h AX, p BX
TEXT freePointerFast<>(SB), NOSPLIT, $0-0
	STATE(AX, BX, R9, R10, plain)
	CMPW (R9), $const_freeZero
	JCC  plain
	PUSH(AX, BX, R9, R10, plain)
plain:
	MOVQ ·plainFreePointer(SB), DX
	MOVQ (DX), R8
	JMP  R8

// func(h *Heap, size, align int, zero bool) ([]byte, error)
//
// Returns h, size and size+align if the arguments and the goroutine are where
// allocFast expects them.
TEXT probeAlloc<>(SB), NOSPLIT, $0-0
	ADDQ BX, CX
	MOVQ (TLS), R8
	CMPQ R14, R8
	JNE  no
	CMPB DIB, $1
	JNE  no
	XORL DI, DI
	XORL SI, SI
	RET
no:
	XORL AX, AX
	RET

// func(h *Heap, b []byte) uintptr
//
// Returns a sum of the arguments in which each has a weight.
TEXT probeFree<>(SB), NOSPLIT, $0-0
	LEAQ (AX)(BX*2), AX
	LEAQ (AX)(CX*4), AX
	LEAQ (AX)(DI*8), AX
	RET

// func processor() uintptr
TEXT processor<>(SB), NOSPLIT, $0-0
	MOVQ const_gM(R14), AX
	MOVQ const_mP(AX), AX
	MOVL const_pID(AX), AX
	RET

// func entryPoints() (alloc, free, freePointer, probeAlloc, probeFree, processor uintptr)
TEXT ·entryPoints(SB), NOSPLIT, $0-48
	LEAQ allocFast<>(SB), AX
	MOVQ AX, alloc+0(FP)
	LEAQ freeFast<>(SB), AX
	MOVQ AX, free+8(FP)
	LEAQ freePointerFast<>(SB), AX
	MOVQ AX, freePointer+16(FP)
	LEAQ probeAlloc<>(SB), AX
	MOVQ AX, probeAlloc+24(FP)
	LEAQ probeFree<>(SB), AX
	MOVQ AX, probeFree+32(FP)
	LEAQ processor<>(SB), AX
	MOVQ AX, processor+40(FP)
	RET
