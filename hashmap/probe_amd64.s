// Probe in assembly: see probe.go. A search in a large map waits for memory, and the processor
// overlaps the waits of as many searches as it has room for instructions. So the whole step is one
// function of few instructions, which compares sixteen tags at once, and loads the line of the
// home's preferred quarter before it has read the tags.
//
// The functions follow Go's calling convention: arguments are in AX and BX, results in AX, BX, CX
// and DI.

//go:build !race && !freehold_portable && !asan && !freehold_seams

#include "go_asm.h"
#include "textflag.h"

// TABLE sets DI to the table for hash BX in the map SI.
#define TABLE \
	MOVBLZX core_shift(SI), CX \
	MOVQ core_dir(SI), DI \
	MOVQ BX, DX \
	SHRQ CX, DX \
	MOVQ (DI)(DX*8), DI

// LINE finds the home of hash BX in the table DI, and begins to load the line of its preferred
// quarter. SI+layout has the map's layout. It sets CX to the address of the home's tags, R10 to that
// of its first key, R12 to the step between keys, DX to the number of the home, DI to the table's
// address and R9 to its groups.
#define LINE(layout, headShift) \
	MOVL DI, CX \
	ANDL $const_refMask, CX \
	ANDQ $~const_refMask, DI \
	LEAQ ·classes(SB), R11 \
	MOVL class_groups(R11)(CX*8), R9 \
	MOVL class_slots(R11)(CX*8), R10 \
	MOVL BX, DX \
	IMULQ R9, DX \
	SHRQ $const_groupShift, DX \
	ADDQ DI, R10 \
	MOVQ (layout+layout_groupBytes)(SI), R11 \
	IMULQ DX, R11 \
	ADDQ R11, R10 \
	ADDQ (layout+layout_keys)(SI), R10 \
	MOVQ BX, R11 \
	SHRQ $const_quarterShift, R11 \
	ANDL $3, R11 \
	MOVQ (layout+layout_keyStep)(SI), R12 \
	IMULQ R12, R11 \
	PREFETCHT0 (R10)(R11*4) /* the first of quarterSlots slots */ \
	MOVQ DX, CX \
	SHLQ $headShift, CX \
	ADDQ DI, CX

// TAGS sets BX to the tag of hash BX. R11 has a bit for each tag at CX that matches, and the flags
// tell whether one does.
#define TAGS \
	SHRQ $const_tagShift, BX \
	MOVBLZX BX, BX \
	MOVL $2, R11 \
	CMPL BX, R11 \
	CMOVLLT R11, BX \
	MOVQ BX, X0 \
	PUNPCKLBW X0, X0 \
	PSHUFLW $0, X0, X0 \
	PUNPCKLQDQ X0, X0 \
	MOVOU (CX), X1 \
	PCMPEQB X0, X1 \
	PMOVMSKB X1, R11 \
	TESTL R11, R11

#define HOME \
	TABLE \
	LINE(core_scheme+scheme_layout, 4 /* groupSlots */) \
	TAGS

// NONE sets AX to absent or further, after TAGS found none.
#define NONE \
	SHLQ $4, R9 /* groupSlots */ \
	ADDQ R9, DI \
	MOVBLZX (DI)(DX*1), R11 /* the overflow bits */ \
	ANDL $7, BX \
	XORL AX, AX \
	BTL BX, R11 \
	SETCS AX

// func entries() *uintptr
TEXT ·entries(SB), NOSPLIT, $0-8
	LEAQ functions<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET

DATA functions<>+probes_probe(SB)/8, $probe<>(SB)
DATA functions<>+probes_word(SB)/8, $word<>(SB)
DATA functions<>+probes_ahead(SB)/8, $ahead<>(SB)
DATA functions<>+probes_peek(SB)/8, $peek<>(SB)
DATA functions<>+probes_home(SB)/8, $home<>(SB)
DATA functions<>+probes_locked(SB)/8, $locked<>(SB)
GLOBL functions<>(SB), RODATA, $probes__size

// func(c *core, h uint64) (key, slot, tags uintptr)
TEXT probe<>(SB), NOSPLIT, $0-0
	MOVQ  AX, SI
	HOME
	JZ    none
	BSFL  R11, BX
	IMULQ BX, R12
	LEAQ  (R10)(R12*1), AX
	RET
none:
	NONE
	RET

// func(c *core, k uint64) (key, slot, tags uintptr, h uint64)
TEXT word<>(SB), NOSPLIT, $0-0
	MOVQ  AX, SI
	MOVQ  BX, R8
	MOVQ  (core_scheme+scheme_hash+hasher_seed+0)(SI), AX // as Uint64 of the seed
	XORQ  BX, AX
	MULQ  (core_scheme+scheme_hash+hasher_seed+8)(SI)
	XORQ  DX, AX
	MULQ  (core_scheme+scheme_hash+hasher_seed+16)(SI)
	XORQ  DX, AX
	MOVQ  AX, BX
	MOVQ  AX, R13
	HOME
	JZ    none
	BSFL  R11, BX
	IMULQ BX, R12
	LEAQ  (R10)(R12*1), AX
	CMPQ  (AX), R8
	JNE   another
	MOVQ  R13, DI
	RET
none:
	NONE
	MOVQ  R13, DI
	RET
another:
	MOVL  $const_further, AX
	MOVQ  R13, DI
	RET

// func(c *core, h uint64) byte
TEXT ahead<>(SB), NOSPLIT, $0-0
	MOVQ AX, SI
	TABLE
	LINE(core_scheme+scheme_layout, 4 /* groupSlots */)
	PREFETCHT0 (CX)
	XORL AX, AX
	RET

// func(m *sharedTables, h uint64) (key uintptr, version *uint64, seen uint64)
TEXT peek<>(SB), NOSPLIT, $0-0
	MOVQ AX, SI
	MOVQ sharedTables_dir(SI), DI
	MOVQ DI, CX
	MOVQ BX, DX
	SHRQ CX, DX
	ANDQ $~const_classMask, DI
	LEAQ (DI)(DX*8), R8
	MOVQ (R8), DI // R1
	CMPQ DI, $const_replacedDirectory
	JLS  writer
	MOVQ DI, AX
	LINE(sharedTables_scheme+scheme_layout, const_sharedHeadShift)
	LEAQ const_versionOffset(CX), R13
	MOVQ (R13), SI // R2
	TESTL $1, SI
	JNE  writer
	CMPQ AX, (R8) // R3
	JNE  writer
	TAGS // R4
	JZ   none
	BSFL  R11, BX
	IMULQ BX, R12
	LEAQ  (R10)(R12*1), AX
	MOVQ  R13, BX
	MOVQ  SI, CX
	RET
none:
	MOVBLZX const_overflowOffset(CX), R11
	ANDL    $7, BX
	XORL    AX, AX
	BTL     BX, R11
	JCS     writer
	CMPQ    SI, (R13) // R5
	JNE  writer
	RET
writer:
	MOVL $const_further, AX
	RET

// func(m *sharedTables, e uintptr, h uint64)
TEXT home<>(SB), NOSPLIT, $0-0
	MOVQ AX, SI
	MOVQ BX, DI
	MOVQ CX, BX
	LINE(sharedTables_scheme+scheme_layout, const_sharedHeadShift)
	PREFETCHT0 (CX)
	RET

// func(l *layout, t table, h uint64) (key, slot, tags uintptr)
TEXT locked<>(SB), NOSPLIT, $0-0
	MOVQ AX, SI
	MOVQ BX, DI
	MOVQ CX, BX
	LINE(0, const_sharedHeadShift)
	TAGS
	JZ    none
	BSFL  R11, BX
	IMULQ BX, R12
	LEAQ  (R10)(R12*1), AX
	RET
none:
	XORL    AX, AX
	MOVBLZX const_overflowOffset(CX), R11
	ANDL    $7, BX
	BTL     BX, R11
	SETCS   AX
	RET
