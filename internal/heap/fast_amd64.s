// Alloc and Free without a pin: see fast_amd64.go.
//
// The functions follow Go's calling convention: arguments are in registers and the goroutine is in
// R14. When a function jumps to a Go function, the arguments are in their registers.

//go:build !race && !freehold_portable && !asan

#include "go_asm.h"
#include "textflag.h"

// HEAP jumps to none if the heap is nil: only Go turns a fault this far from address 0 into a
// panic.
#define HEAP(none) \
	TESTQ AX, AX \
	JEQ  none

// CACHE sets cache to the cache of this processor, or to 0 in a zero Heap. For a processor beyond
// the first slots it jumps to far. The code at far is FAR.
#define CACHE(h, cache, near, far) \
	MOVQ const_gM(R14), cache \
	MOVQ const_mP(cache), cache \
	MOVL const_pID(cache), cache \
	CMPL cache, $const_firstSlots \
	JAE  far \
near: \
	MOVQ (Heap_caches+const_tableSlots)(h)(cache*8), cache

// FAR jumps back to near if the processor has a slot, or else to none.
#define FAR(h, cache, near, none) \
	CMPQ cache, (Heap_caches+const_tableLen)(h) \
	JCS  near \
	JMP  none

// STATE sets status to the address of the status of the block at addr, and class to its class. It
// jumps to none if no block of the heap with the map ID begins there. It changes R8, R11 and R12.
#define STATE(mapID, addr, status, class, none) \
	MOVQ addr, R8 \
	SUBQ freehold·addresses+const_firstBase(SB), R8 \
	CMPQ R8, freehold·addresses+const_firstUsed(SB) \
	JAE  none \
	MOVQ R8, status \
	SHRQ $const_pageShift, status \
	MOVQ freehold·addresses+const_firstWords(SB), R11 \
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

// LIVE jumps to none unless the status is size, which is at most maxSmall. The status of a free
// block is larger. It changes R12.
#define LIVE(status, size, none) \
	MOVWLZX (status), R12 \
	CMPQ R12, size \
	JNE  none

// PUSH frees the block at addr onto the loaded magazine of its class. It jumps to full if there is
// no room; from there ROOM jumps back to put. It sets R11 to the top.
#define PUSH(cache, addr, status, class, put, full) \
	MOVQ const_tops(cache)(class*8), R11 \
	CMPQ R11, const_ends(cache)(class*8) \
	JEQ  full \
put: \
	MOVW $const_freeDirty, (status) \
	MOVQ addr, const_entryAddr(R11) \
	MOVQ status, const_entryStatus(R11) \
	ADDQ $const_entrySize, R11 \
	MOVQ R11, const_tops(cache)(class*8)

// ROOM swaps the magazines of a class and jumps back to put. It jumps to none if the spare is full
// too. It changes R12, R13 and DX.
#define ROOM(cache, class, put, none) \
	MOVQ const_spareTops(cache)(class*8), R12 \
	MOVQ const_spareEnds(cache)(class*8), R13 \
	CMPQ R12, R13 \
	JEQ  none \
	MOVQ const_ends(cache)(class*8), DX \
	MOVQ R11, const_spareTops(cache)(class*8) \
	MOVQ DX, const_spareEnds(cache)(class*8) \
	MOVQ R13, const_ends(cache)(class*8) \
	MOVQ R12, R11 \
	JMP  put

// CLASS sets R8 to the size BX rounded up to the alignment CX, or to 8 if that is more. It sets DX
// to the alignment less 1. It jumps to large for a large block, to wide for an alignment above 8,
// and to none for a wrong one. An alignment of 0 is wide. A size of 0 has class 0, in which no
// cache has a block.
#define CLASS(large, wide, none) \
	CMPQ BX, $const_maxSmall \
	JHI  large \
	LEAQ -1(CX), DX \
	CMPQ DX, $8 \
	JCC  wide \
	TESTQ DX, CX \
	JNE  none \
	LEAQ 7(BX), R8

// WIDE is CLASS for an alignment of at least 16.
#define WIDE(none) \
	CMPQ DX, $const_maxAlign \
	JCC  none \
	TESTQ DX, CX \
	JNE  none \
	LEAQ (BX)(DX*1), R8 \
	NOTQ DX \
	ANDQ DX, R8

// FIND finds the topmost block of the class in cache, after CLASS. It sets R8 to the class, R10 to
// the top, R11 to the address of the status and R12 to the status. It jumps to none if there is no
// block.
#define FIND(cache, none) \
	SHRQ $3, R8 \
	LEAQ freehold·classOf(SB), R10 \
	MOVBLZX (R10)(R8*1), R8 \
	MOVQ const_tops(cache)(R8*8), R10 \
	MOVQ (const_entryStatus-const_entrySize)(R10), R11 \
	MOVWLZX (R11), R12 \
	CMPL R12, $const_freeZero \
	JCS  none

// SPARE is FIND in the spare. If the loaded magazine is empty and the spare has a free block, it
// swaps them and jumps back to take; otherwise it jumps to none. The swap is complete before COUNT,
// which may jump to Go. It changes DX and R13.
#define SPARE(cache, take, none) \
	LEAQ freehold·sentinel+const_sentinelStatus(SB), R13 \
	CMPQ R11, R13 \
	JNE  none \
	MOVQ const_spareTops(cache)(R8*8), R13 \
	MOVQ (const_entryStatus-const_entrySize)(R13), R11 \
	MOVWLZX (R11), R12 \
	CMPL R12, $const_freeZero \
	JCS  none \
	MOVQ R10, const_spareTops(cache)(R8*8) \
	MOVQ R13, const_tops(cache)(R8*8) \
	MOVQ R13, R10 \
	MOVQ const_ends(cache)(R8*8), R13 \
	MOVQ const_spareEnds(cache)(R8*8), DX \
	MOVQ R13, const_spareEnds(cache)(R8*8) \
	MOVQ DX, const_ends(cache)(R8*8) \
	JMP  take

// COUNT counts down to the next watched block by the BX bytes and the extra bytes of each block. If
// the countdown ends with this block, it leaves the countdown alone and jumps to none. It changes
// R13.
#define COUNT(cache, none) \
	MOVQ cache_left(cache), R13 \
	SUBQ BX, R13 \
	SUBQ freehold·countdown+const_countdownExtra(SB), R13 \
	JLT  none \
	MOVQ R13, cache_left(cache)

// TAKE allocates the block that FIND found, and sets AX to it.
#define TAKE(cache) \
	MOVW BX, (R11) \
	MOVQ (const_entryAddr-const_entrySize)(R10), AX \
	SUBQ $const_entrySize, R10 \
	MOVQ R10, const_tops(cache)(R8*8)

// BLOCK returns the BX bytes at AX without an error.
#define BLOCK \
	MOVQ BX, CX \
	XORL DI, DI \
	XORL SI, SI \
	RET

// CLEAR clears the BX bytes at AX by stores that may overlap. It jumps to many if there are more
// than 64 bytes. A block has at least 8 bytes. X15 is 0.
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

// RUN finds a kept run for the BX bytes at a multiple of CX, the alignment. It sets R8 to the
// number of pages and R10 to the span. It jumps to none if the cache has no run, for a wrong
// alignment or one above a page, and for a block to be cleared. It changes R9 and DX. See
// keptRuns.find.
#define RUN(near, far, none) \
	CMPQ BX, $(const_keptPages*const_pageBytes) \
	JHI  none \
	LEAQ -1(CX), DX \
	CMPQ DX, $const_pageBytes \
	JCC  none \
	TESTQ DX, CX \
	JNE  none \
	TESTB DIB, DIB \
	JNE  none \
	CACHE(AX, R9, near, far) \
	TESTQ R9, R9 \
	JEQ  none \
	LEAQ (const_pageBytes-1)(BX), R8 \
	SHRQ $const_pageShift, R8 \
	MOVQ (cache_runs+keptRuns_stacks-8)(R9)(R8*8), R10 \
	TESTQ R10, R10 \
	JEQ  none

// TAKERUN allocates the run that RUN found, and sets AX to it. It changes R11. See keptRuns.take.
#define TAKERUN \
	MOVQ const_spanNext(R10), R11 \
	MOVQ R11, (cache_runs+keptRuns_stacks-8)(R9)(R8*8) \
	MOVQ BX, const_spanSize(R10) \
	SUBQ R8, (cache_runs+keptRuns_held)(R9) \
	DECQ (cache_runs+keptRuns_n)(R9) \
	MOVQ const_spanBase(R10), AX

// SPAN sets span to the span at addr. It jumps to none if there is none. It changes R8 and R11.
#define SPAN(addr, span, none) \
	MOVQ addr, R8 \
	SUBQ freehold·addresses+const_firstBase(SB), R8 \
	CMPQ R8, freehold·addresses+const_firstUsed(SB) \
	JAE  none \
	SHRQ $const_pageShift, R8 \
	MOVQ freehold·addresses+const_firstPages(SB), R11 \
	MOVQ (R11)(R8*8), span \
	TESTQ span, span \
	JEQ  none

// KEEP frees the large block of size bytes at addr, whose span SPAN has found, to the kept runs of
// the cache, and returns. It jumps to none if span has no such block, if the block is watched or
// may otherwise not be kept, if there is no room, and if another goroutine claims the block. The
// exchange compares the size. It changes R8, R9 and R11 to R13. See freeRunLeaf and Span.Claim.
#define KEEP(addr, size, span, near, far, room, lost, other, none) \
	MOVL const_heapID(AX), R11 \
	CMPL const_spanOwner(span), R11 \
	JNE  none \
	CMPB const_spanKind(span), $const_largeRun \
	JNE  none \
	CMPB const_spanAlign(span), $const_pageShift \
	JHI  none \
	CMPQ const_spanSeparate(span), $0 \
	JNE  none \
	CACHE(AX, R9, near, far) \
	MOVQ const_spanPages(span), R12 \
	MOVQ (cache_runs+keptRuns_held)(R9), R13 \
	CMPQ R12, (cache_runs+keptRuns_longest)(R9) \
	JHI  none \
	TESTQ R13, R13 \
	LEAQ (R13)(R12*1), R13 \
	JEQ  room \
	CMPQ R13, (cache_runs+keptRuns_mostHeld)(R9) \
	JHI  none \
room: \
	MOVQ AX, R11 \
	MOVQ size, AX \
	XORL R8, R8 \
	LOCK \
	CMPXCHGQ R8, const_spanSize(span) \
	JNE  lost \
	CMPQ const_spanBase(span), addr \
	JNE  other \
	MOVQ (cache_runs+keptRuns_stacks-8)(R9)(R12*8), R8 \
	MOVQ R8, const_spanNext(span) \
	MOVQ span, (cache_runs+keptRuns_stacks-8)(R9)(R12*8) \
	MOVQ R13, (cache_runs+keptRuns_held)(R9) \
	INCQ (cache_runs+keptRuns_n)(R9) \
	RET \
other: \
	XCHGQ AX, const_spanSize(span) \
lost: \
	MOVQ R11, AX \
	JMP  none

// GO jumps to the function that f holds.
#define GO(f) \
	MOVQ f(SB), DX \
	MOVQ (DX), R8 \
	JMP  R8

// FREEBLOCK frees the small block at BX of the heap AX, after STATE. FREERUN follows.
#define FREEBLOCK \
	CACHE(AX, R8, near, far) \
	PUSH(R8, BX, R9, R10, put, full) \
	RET \
full: \
	ROOM(R8, R10, put, plain)

// FREERUN frees the large block of CX bytes at BX, after SPAN. It is the end of a function, which
// goes on in slow at plain.
#define FREERUN(slow) \
	KEEP(BX, CX, R10, nearRun, farRun, room, lost, other, plain) \
plain: \
	GO(slow) \
far: \
	FAR(AX, R8, near, plain) \
farRun: \
	FAR(AX, R9, nearRun, plain)

// UNCOUNTED stands for COUNT where nothing counts down.
#define UNCOUNTED(cache, none)

// TAIL is the end of ALLOC and MALLOC: it allocates a kept run, finds a block in the spare, and goes
// on in slow at plain. count is COUNT or UNCOUNTED, and result returns the run.
#define TAIL(count, result, slow) \
run: \
	RUN(nearRun, farRun, plain) \
	count(R9, plain) \
	TAKERUN \
	result \
farRun: \
	FAR(AX, R9, nearRun, plain) \
spare: \
	SPARE(R9, take, plain) \
far: \
	FAR(AX, R9, near, plain) \
plain: \
	GO(slow)

// ALLOC is Alloc, with COUNT or UNCOUNTED as count. The arguments and results are in
//
//	h AX, size BX, align CX, zero DI -> AX BX CX, DI SI
#define ALLOC(count) \
	HEAP(plain) \
	CLASS(run, wide, plain) \
class: \
	CACHE(AX, R9, near, far) \
	TESTQ R9, R9 \
	JEQ  plain \
	FIND(R9, spare) \
take: \
	count(R9, plain) \
	TAKE(R9) \
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
	TAIL(count, BLOCK, ·slow+functions_alloc)

// MALLOC is Malloc, with COUNT or UNCOUNTED as count. The argument and the result are in
//
//	h AX, size BX -> AX
#define MALLOC(count) \
	HEAP(plain) \
	CMPQ BX, $const_maxSmall \
	JHI  large \
	LEAQ (const_mallocAlign-1)(BX), R8 \
	ANDQ $~(const_mallocAlign-1), R8 \
	CACHE(AX, R9, near, far) \
	TESTQ R9, R9 \
	JEQ  plain \
	FIND(R9, spare) \
take: \
	count(R9, plain) \
	TAKE(R9) \
	RET \
large: \
	MOVL $const_mallocAlign, CX \
	XORL DI, DI \
	TAIL(count, RET, ·slow+functions_malloc)

// func(h *Heap, size, align int, zero bool) ([]byte, error)
TEXT allocFast<>(SB), NOSPLIT, $0-0
	ALLOC(UNCOUNTED)

TEXT allocCounting<>(SB), NOSPLIT, $0-0
	ALLOC(COUNT)

// func(h *Heap, size int) unsafe.Pointer
TEXT mallocFast<>(SB), NOSPLIT, $0-0
	MALLOC(UNCOUNTED)

TEXT mallocCounting<>(SB), NOSPLIT, $0-0
	MALLOC(COUNT)

// func(h *Heap, b []byte)
//
//	h AX, b BX CX DI
TEXT freeFast<>(SB), NOSPLIT, $0-0
	HEAP(plain)
	CMPQ CX, $const_maxSmall
	JHI  run
	STATE(Heap_mapID(AX), BX, R9, R10, plain)
	LIVE(R9, CX, plain)
	FREEBLOCK
run:
	SPAN(BX, R10, plain)
	FREERUN(·slow+functions_free)

// func(h *Heap, p unsafe.Pointer)
//
//	h AX, p BX
TEXT freePointerFast<>(SB), NOSPLIT, $0-0
	HEAP(plain)
	STATE(Heap_mapID(AX), BX, R9, R10, run)
	CMPW (R9), $const_maxSmall
	JHI  plain
	FREEBLOCK
run:
	SPAN(BX, R10, plain)
	MOVQ const_spanSize(R10), CX
	TESTQ CX, CX
	JEQ  plain
	FREERUN(·slow+functions_freePointer)

DATA fastFunctions<>+functions_alloc(SB)/8, $allocFast<>(SB)
DATA fastFunctions<>+functions_malloc(SB)/8, $mallocFast<>(SB)
DATA fastFunctions<>+functions_free(SB)/8, $freeFast<>(SB)
DATA fastFunctions<>+functions_freePointer(SB)/8, $freePointerFast<>(SB)
GLOBL fastFunctions<>(SB), RODATA, $functions__size

DATA countingFunctions<>+functions_alloc(SB)/8, $allocCounting<>(SB)
DATA countingFunctions<>+functions_malloc(SB)/8, $mallocCounting<>(SB)
DATA countingFunctions<>+functions_free(SB)/8, $freeFast<>(SB)
DATA countingFunctions<>+functions_freePointer(SB)/8, $freePointerFast<>(SB)
GLOBL countingFunctions<>(SB), RODATA, $functions__size

// func code() *uintptr
TEXT ·code(SB), NOSPLIT, $0-8
	LEAQ fastFunctions<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// func countingCode() *uintptr
TEXT ·countingCode(SB), NOSPLIT, $0-8
	LEAQ countingFunctions<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET
