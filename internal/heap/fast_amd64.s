// Alloc and Free without a pin: see fast_amd64.go.
//
// They are called as Go functions call each other, with arguments in registers
// and the goroutine in R14. They need no at, and nobody looks at the result of a free. Where they go on in a Go function, the arguments
// are in their registers again.

//go:build !race && !freehold_portable && !asan

#include "go_asm.h"
#include "textflag.h"

// CACHE sets cache to the cache of the processor that this runs on, 0 in a zero Heap.
// For a processor beyond the first slots it jumps to far, where FAR is.
#define CACHE(h, cache, near, far) \
	MOVQ const_gM(R14), cache \
	MOVQ const_mP(cache), cache \
	MOVL const_pID(cache), cache \
	CMPL cache, $const_firstSlots \
	JAE  far \
near: \
	MOVQ (Heap_caches+const_tableSlots)(h)(cache*8), cache

// FAR goes back to near if the processor has a slot, or jumps to none.
#define FAR(h, cache, near, none) \
	CMPQ cache, (Heap_caches+const_tableLen)(h) \
	JCS  near \
	JMP  none

// STATE sets status to the place of the status of the map ID's block at addr, and
// class to its class, or jumps to none. It changes R8, R11 and R12.
#define STATE(mapID, addr, status, class, none) \
	MOVQ addr, R8 \
	SUBQ freehold·addresses+const_firstBase(SB), R8 \
	CMPQ R8, freehold·addresses+const_firstUsed(SB) \
	JAE  none \
	MOVQ R8, status \
	SHRQ $const_pageShift, status \
	MOVQ freehold·addresses+const_firstEntries(SB), R11 \
	MOVQ (R11)(status*8), status \
	XORQ mapID, status \
	TESTL $const_mapHeapMask, status \
	JNE  none \
	MOVBLZX status, class \
	LEAQ freehold·reciprocals(SB), R11 \
	MOVL (R11)(class*4), R11 \
	MOVL status, R12 \
	ANDL $const_mapPageMask, R12 \
	SHRL $(const_mapPageShift-const_pageShift), R12 \
	ANDL $((1<<const_pageShift)-1), R8 \
	ORL  R12, R8 \
	IMULQ R11, R8 \
	CMPL R8, R11 \
	JAE  none \
	SHRQ $32, R8 \
	SHRQ $(const_mapStatusShift-const_statusShift), status \
	ANDQ $~((1<<const_statusShift)-1), status \
	LEAQ (status)(R8*2), status

// LIVE jumps to none unless size, at most maxSmall, is the status. The status of a free
// block is larger. It changes R12.
#define LIVE(status, size, none) \
	MOVWLZX (status), R12 \
	CMPQ R12, size \
	JNE  none

// PUSH puts the block at addr onto its class's magazine in cache, or jumps to
// full, from where ROOM goes back to put. It sets R11 to the top.
#define PUSH(cache, addr, status, class, put, full) \
	MOVQ const_cacheTops(cache)(class*8), R11 \
	CMPQ R11, const_cacheEnds(cache)(class*8) \
	JEQ  full \
put: \
	MOVW $const_freeDirty, (status) \
	MOVQ addr, const_entryAddr(R11) \
	MOVQ status, const_entryStatus(R11) \
	ADDQ $const_entrySize, R11 \
	MOVQ R11, const_cacheTops(cache)(class*8)

// ROOM swaps the magazines of a class if the spare is not full, and goes back to put, or jumps to
// none. It changes R12, R13 and DX.
#define ROOM(cache, class, put, none) \
	MOVQ const_cacheSpareTops(cache)(class*8), R12 \
	MOVQ const_cacheSpareEnds(cache)(class*8), R13 \
	CMPQ R12, R13 \
	JEQ  none \
	MOVQ const_cacheEnds(cache)(class*8), DX \
	MOVQ R11, const_cacheSpareTops(cache)(class*8) \
	MOVQ DX, const_cacheSpareEnds(cache)(class*8) \
	MOVQ R13, const_cacheEnds(cache)(class*8) \
	MOVQ R12, R11 \
	JMP  put

// CLASS sets R8 to the size BX rounded up to the alignment CX, at least 8, or
// jumps: to large for a large block, to wide for an alignment above 8, or to none. DX is
// the alignment less 1. An alignment of 0 is wide. A size of 0 has class 0, of which no cache
// has a block.
#define CLASS(large, wide, none) \
	CMPQ BX, $const_maxSmall \
	JHI  large \
	LEAQ -1(CX), DX \
	CMPQ DX, $8 \
	JCC  wide \
	TESTQ DX, CX \
	JNE  none \
	LEAQ 7(BX), R8

// WIDE is CLASS for an alignment of 16 at least, so that there is nothing to
// round up to 8.
#define WIDE(none) \
	CMPQ DX, $const_maxAlign \
	JCC  none \
	TESTQ DX, CX \
	JNE  none \
	LEAQ (BX)(DX*1), R8 \
	NOTQ DX \
	ANDQ DX, R8

// FIND finds the topmost block in cache of the class that CLASS found: it sets R8 to the class, R10
// to the top, R11 to the place of the status and R12 to the status, or jumps to none.
#define FIND(cache, none) \
	SHRQ $3, R8 \
	LEAQ freehold·classOf(SB), R10 \
	MOVBLZX (R10)(R8*1), R8 \
	MOVQ const_cacheTops(cache)(R8*8), R10 \
	MOVQ (const_entryStatus-const_entrySize)(R10), R11 \
	MOVWLZX (R11), R12 \
	CMPL R12, $const_freeZero \
	JCS  none

// SPARE does what FIND could not: if the loaded magazine is empty and the spare has a free block,
// it swaps them and goes back to take, else it jumps to none. The swap is complete before COUNT,
// which may go on in Go. It changes DX and R13.
#define SPARE(cache, take, none) \
	LEAQ freehold·sentinel+const_sentinelStatus(SB), R13 \
	CMPQ R11, R13 \
	JNE  none \
	MOVQ const_cacheSpareTops(cache)(R8*8), R13 \
	MOVQ (const_entryStatus-const_entrySize)(R13), R11 \
	MOVWLZX (R11), R12 \
	CMPL R12, $const_freeZero \
	JCS  none \
	MOVQ R10, const_cacheSpareTops(cache)(R8*8) \
	MOVQ R13, const_cacheTops(cache)(R8*8) \
	MOVQ R13, R10 \
	MOVQ const_cacheEnds(cache)(R8*8), R13 \
	MOVQ const_cacheSpareEnds(cache)(R8*8), DX \
	MOVQ R13, const_cacheSpareEnds(cache)(R8*8) \
	MOVQ DX, const_cacheEnds(cache)(R8*8) \
	JMP  take

// COUNT counts the BX bytes, and what each block counts more, down to the next event. If
// this block is one, it jumps to none instead, where they are counted again. It changes R13.
#define COUNT(cache, none) \
	MOVQ cache_left(cache), R13 \
	SUBQ BX, R13 \
	SUBQ freehold·countdown+const_countdownExtra(SB), R13 \
	JLT  none \
	MOVQ R13, cache_left(cache)

// TAKE takes the block that FIND found. It sets AX to the block.
#define TAKE(cache) \
	MOVW BX, (R11) \
	MOVQ (const_entryAddr-const_entrySize)(R10), AX \
	SUBQ $const_entrySize, R10 \
	MOVQ R10, const_cacheTops(cache)(R8*8)

// BLOCK returns the BX bytes at AX without an error.
#define BLOCK \
	MOVQ BX, CX \
	XORL DI, DI \
	XORL SI, SI \
	RET

// CLEAR clears the BX bytes at AX, by stores that may overlap, or jumps to many if
// they are more than 64. A block has 8 bytes at least. X15 is 0.
#define CLEAR(small, tiny, many, done) \
	CMPQ BX, $32 \
	JLS  small \
	CMPQ BX, $64 \
	JHI  many \
	MOVUPS X15, (AX) \
	MOVUPS X15, 16(AX) \
	MOVUPS X15, -32(AX)(BX*1) \
	MOVUPS X15, -16(AX)(BX*1) \
	JMP  done \
small: \
	CMPQ BX, $16 \
	JCS  tiny \
	MOVUPS X15, (AX) \
	MOVUPS X15, -16(AX)(BX*1) \
	JMP  done \
tiny: \
	MOVQ X15, (AX) \
	CMPQ BX, $8 \
	JLS  done \
	MOVQ X15, -8(AX)(BX*1)

// GO goes on in the function that f holds.
#define GO(f) \
	MOVQ f(SB), DX \
	MOVQ (DX), R8 \
	JMP  R8

// FINISH is an Alloc from where TAKE found a block: from there on the block is
// the caller's. Elsewhere allocates large ones. It has the labels that CLASS and TAKE jump to, and goes back to
// class from wide.
#define FINISH(otherwise, elsewhere) \
	TESTB DIB, DIB \
	JNE  clear \
	BLOCK \
wide: \
	WIDE(plain) \
	JMP  class \
clear: \
	CMPL R12, $const_freeZero \
	JEQ  done \
	CLEAR(small, tiny, many, done) \
done: \
	BLOCK \
many: \
	GO(·cleared) \
large: \
	GO(elsewhere) \
plain: \
	GO(otherwise)

// func(h *Heap, size, align int, zero bool, at uintptr) ([]byte, error)
//
//	h AX, size BX, align CX, zero DI, at SI -> AX BX CX, DI SI
TEXT allocFast<>(SB), NOSPLIT, $0-0
	CLASS(large, wide, plain)
class:
	CACHE(AX, R9, near, far)
	TESTQ R9, R9
	JEQ  plain
	FIND(R9, spare)
take:
	TAKE(R9)
	FINISH(·plain+functions_Alloc, ·large+largeFunctions_alloc)
spare:
	SPARE(R9, take, plain)
far:
	FAR(AX, R9, near, plain)

// allocFast, counting.
TEXT allocCounting<>(SB), NOSPLIT, $0-0
	CLASS(large, wide, plain)
class:
	CACHE(AX, R9, near, far)
	TESTQ R9, R9
	JEQ  plain
	FIND(R9, spare)
take:
	COUNT(R9, plain)
	TAKE(R9)
	FINISH(·plain+functions_Alloc, ·large+largeFunctions_alloc)
spare:
	SPARE(R9, take, plain)
far:
	FAR(AX, R9, near, plain)

// func(h *Heap, b []byte, at uintptr) bool
//
//	h AX, b BX CX DI, at SI
TEXT freeFast<>(SB), NOSPLIT, $0-0
	CMPQ CX, $const_maxSmall
	JHI  large
	STATE(Heap_mapID(AX), BX, R9, R10, plain)
	LIVE(R9, CX, plain)
	CACHE(AX, R8, near, far)
	PUSH(R8, BX, R9, R10, put, full)
	RET
full:
	ROOM(R8, R10, put, plain)
plain:
	GO(·plain+functions_free)
large:
	GO(·large+largeFunctions_free)
far:
	FAR(AX, R8, near, plain)

// func(h *Heap, p unsafe.Pointer, _, _, at uintptr) bool
//
//	h AX, p BX, at SI
TEXT freePointerFast<>(SB), NOSPLIT, $0-0
	STATE(Heap_mapID(AX), BX, R9, R10, plain)
	CMPW (R9), $const_maxSmall
	JHI  plain
	CACHE(AX, R8, near, far)
	PUSH(R8, BX, R9, R10, put, full)
	RET
full:
	ROOM(R8, R10, put, plain)
plain:
	GO(·plain+functions_freePointer)
far:
	FAR(AX, R8, near, plain)

DATA fastFunctions<>+functions_Alloc(SB)/8, $allocFast<>(SB)
DATA fastFunctions<>+functions_free(SB)/8, $freeFast<>(SB)
DATA fastFunctions<>+functions_freePointer(SB)/8, $freePointerFast<>(SB)
GLOBL fastFunctions<>(SB), RODATA, $functions__size

DATA countingFunctions<>+functions_Alloc(SB)/8, $allocCounting<>(SB)
DATA countingFunctions<>+functions_free(SB)/8, $freeFast<>(SB)
DATA countingFunctions<>+functions_freePointer(SB)/8, $freePointerFast<>(SB)
GLOBL countingFunctions<>(SB), RODATA, $functions__size

// func entries() *uintptr
TEXT ·entries(SB), NOSPLIT, $0-8
	LEAQ fastFunctions<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// func countingEntries() *uintptr
TEXT ·countingEntries(SB), NOSPLIT, $0-8
	LEAQ countingFunctions<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET
