// Alloc and Free without a pin: see fast_amd64.go.
//
// They are called as Go functions call each other, with arguments in registers
// and the goroutine in R14. Where they go on in a Go function, the arguments
// are in their registers again.

//go:build !race && !freehold_portable

#include "go_asm.h"
#include "textflag.h"

// The runtime's g.m, m.p and p.id; pinCode in fast_amd64.go holds the same.
#define g_m 0x30
#define m_p 0xd0
#define p_id 0

// SLOT sets slot to the class's slot in the cache of the processor that this
// runs on, or jumps to none. It changes class.
#define SLOT(h, class, slot, none) \
	MOVQ g_m(R14), slot \
	MOVQ m_p(slot), slot \
	MOVL p_id(slot), slot \
	CMPL slot, $const_maxCaches \
	JAE  none \
	MOVQ Heap_caches(h)(slot*8), slot \
	TESTQ slot, slot \
	JEQ  none \
	SHLL $4, class \
	LEAQ cache_slots(slot)(class*1), slot

// func(h *Heap, size, align int, zero bool) ([]byte, error)
//
//	h AX, size BX, align CX, zero DI -> AX BX CX, DI SI
TEXT allocFast<>(SB), NOSPLIT, $0-0
	// A size of 0 has class 0, of which no cache has a block.
	CMPQ BX, $const_maxSmall
	JHI  plain
	CMPQ CX, $8
	JHI  wide
	MOVL $(1<<1 | 1<<2 | 1<<4 | 1<<8), DX
	BTL  CX, DX
	JCC  plain
	LEAQ 7(BX), R8
class:
	SHRQ $3, R8
	LEAQ ·classOf(SB), R9
	MOVBLZX (R9)(R8*1), R8
	SLOT(AX, R8, R9, plain)
	MOVL slot_n(R9), R10
	SUBL $1, R10
	JCS  plain
	MOVL R10, R11
	SHLQ $4, R11
	ADDQ slot_entries(R9), R11
	MOVQ entry_state(R11), R12
	MOVQ R12, R13
	ANDQ $~const_zeroBlock, R13
	CMPW (R13), $0
	JNE  plain
	MOVW BX, (R13)
	MOVL R10, slot_n(R9)
	MOVQ entry_addr(R11), AX
	// From here on the block is the caller's.
	TESTB DIB, DIB
	JNE  zero
done:
	MOVQ BX, CX
	XORL DI, DI
	XORL SI, SI
	RET
wide:
	CMPQ CX, $const_maxAlign
	JHI  plain
	LEAQ -1(CX), DX
	TESTQ DX, CX
	JNE  plain
	LEAQ (BX)(DX*1), R8
	NOTQ DX
	ANDQ DX, R8 // a multiple of 16 at least, so there is nothing to round up
	JMP  class
zero:
	TESTL $const_zeroBlock, R12
	JNE  done
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
	MOVQ BX, R8
	SUBQ ·addresses+(space_first+region_base)(SB), R8
	CMPQ R8, ·addresses+(space_first+region_used)(SB)
	JAE  plain
	SHRQ $const_pageShift, R8
	MOVQ ·addresses+(space_first+region_pages)(SB), R9
	MOVQ (R9)(R8*8), R9 // the span
	TESTQ R9, R9
	JEQ  plain
	MOVQ BX, R8
	SUBQ span_base(R9), R8
	MOVL span_recip(R9), R10
	IMULQ R8, R10
	SHRQ $32, R10 // the block's index
	MOVQ span_states(R9), R11
	LEAQ (R11)(R10*2), R11
	MOVWLZX (R11), R12
	CMPQ R12, CX
	JNE  plain
	IMULQ span_size(R9), R10
	CMPQ R10, R8
	JNE  plain
	MOVL span_owner(R9), R12
	CMPL R12, Heap_id(AX)
	JNE  plain
	CMPQ CX, DI
	JNE  plain
	TESTQ CX, CX
	JEQ  plain
	MOVBLZX span_class(R9), R10
	SLOT(AX, R10, R12, plain)
	MOVL slot_n(R12), R10
	CMPL R10, slot_cap(R12)
	JCC  plain
	MOVL R10, R13
	SHLQ $4, R13
	ADDQ slot_entries(R12), R13
	MOVW $0, (R11)
	MOVQ BX, entry_addr(R13)
	MOVQ R11, entry_state(R13)
	INCL R10
	MOVL R10, slot_n(R12)
	RET
plain:
	MOVQ ·plainFree(SB), DX
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
	MOVQ g_m(R14), AX
	MOVQ m_p(AX), AX
	MOVL p_id(AX), AX
	RET

// func entryPoints() (alloc, free, probeAlloc, probeFree, processor uintptr)
TEXT ·entryPoints(SB), NOSPLIT, $0-40
	LEAQ allocFast<>(SB), AX
	MOVQ AX, alloc+0(FP)
	LEAQ freeFast<>(SB), AX
	MOVQ AX, free+8(FP)
	LEAQ probeAlloc<>(SB), AX
	MOVQ AX, probeAlloc+16(FP)
	LEAQ probeFree<>(SB), AX
	MOVQ AX, probeFree+24(FP)
	LEAQ processor<>(SB), AX
	MOVQ AX, processor+32(FP)
	RET
