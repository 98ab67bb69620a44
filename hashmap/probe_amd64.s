// Probe in assembly: see probe.go. A search in a large map waits for memory, and the processor
// overlaps the waits of as many searches as it has room for instructions. So the whole step is one
// function of few instructions, which compares sixteen tags at once, and loads the line of the
// home's preferred quarter before it has read the tags.
//
// The functions follow Go's calling convention: arguments are in AX, BX, CX and DI, results in AX, BX,
// CX and DI.

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

// HASH sets AX to the hash of word BX, as Uint64 of the seed of the map SI. It changes DX.
#define HASH(scheme) \
	MOVQ (scheme+scheme_hash+hasher_seed+0)(SI), AX \
	XORQ BX, AX \
	MULQ (scheme+scheme_hash+hasher_seed+8)(SI) \
	XORQ DX, AX \
	MULQ (scheme+scheme_hash+hasher_seed+16)(SI) \
	XORQ DX, AX

// TAG sets BX to the tag of hash BX.
#define TAG \
	SHRQ $const_tagShift, BX \
	MOVBLZX BX, BX \
	MOVL $2, R11 \
	CMPL BX, R11 \
	CMOVLLT R11, BX

// MATCH gives R11 a bit for each tag at CX that is in all bytes of X0. The flags tell whether there
// is one.
#define MATCH \
	MOVOU (CX), X1 \
	PCMPEQB X0, X1 \
	PMOVMSKB X1, R11 \
	TESTL R11, R11

// TAGS sets BX to the tag of hash BX, and does MATCH.
#define TAGS \
	TAG \
	MOVQ BX, X0 \
	PUNPCKLBW X0, X0 \
	PSHUFLW $0, X0, X0 \
	PUNPCKLQDQ X0, X0 \
	MATCH

#define HOME \
	TABLE \
	LINE(core_scheme+scheme_layout, 4 /* groupSlots */) \
	TAGS

// PASSED sets the carry flag if an entry with tag BX has passed the group of number DX in the table
// DI of R9 groups, and AX to 0.
#define PASSED \
	MOVQ R9, R11 \
	SHLQ $4, R11 /* groupSlots */ \
	ADDQ DI, R11 \
	MOVBLZX (R11)(DX*1), R11 /* the overflow bits */ \
	ANDL $7, BX \
	XORL AX, AX \
	BTL BX, R11

// func entries() *uintptr
TEXT ·entries(SB), NOSPLIT, $0-8
	LEAQ functions<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET

DATA functions<>+probes_probe(SB)/8, $probe<>(SB)
DATA functions<>+probes_word(SB)/8, $word<>(SB)
DATA functions<>+probes_text(SB)/8, $text<>(SB)
DATA functions<>+probes_ahead(SB)/8, $ahead<>(SB)
DATA functions<>+probes_peek(SB)/8, $peek<>(SB)
DATA functions<>+probes_peekWord(SB)/8, $peekWord<>(SB)
DATA functions<>+probes_home(SB)/8, $home<>(SB)
DATA functions<>+probes_locked(SB)/8, $locked<>(SB)
DATA functions<>+probes_room(SB)/8, $room<>(SB)
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
	PASSED
	SETCS AX
	RET

// ATHOME compares group DX of a table of R9 groups with the home of hash R13. It uses AX.
#define ATHOME \
	MOVL  R13, AX; \
	IMULQ R9, AX; \
	SHRQ  $const_groupShift, AX; \
	CMPQ  AX, DX

// NOKEY sets the results of a search that found nothing: no key, the tags of the home, and the hash.
#define NOKEY \
	MOVL  R13, CX; \
	IMULQ R9, CX; \
	SHRQ  $const_groupShift, CX; \
	SHLQ  $4, CX; \
	ADDQ  DI, CX; \
	XORL  AX, AX; \
	MOVQ  R13, DI

// func(c *core, k uint64) (key, slot, tags uintptr, h uint64)
TEXT word<>(SB), NOSPLIT, $0-0
	MOVQ  AX, SI
	MOVQ  BX, R8
	HASH(core_scheme)
	MOVQ  AX, BX
	MOVQ  AX, R13
	HOME
	JZ    none
candidate:
	BSFL  R11, BX
	IMULQ BX, R12
	LEAQ  (R10)(R12*1), AX
	CMPQ  (AX), R8
	JNE   another
	MOVQ  R13, DI
	RET
none:
	PASSED
	JCS   far
	MOVQ  R10, BX
	MOVQ  R13, DI
	RET

another: // another slot of the group
	MOVQ  (core_scheme+scheme_layout+layout_keyStep)(SI), R12
	LEAL  -1(R11), BX
	ANDL  BX, R11
	JNE   candidate
	MOVQ  R13, BX
	TAG
	PASSED
	JCC   nowhere
far: // the next group, unless that is the home
	INCQ  DX
	ADDQ  $16, CX // groupSlots
	ADDQ  (core_scheme+scheme_layout+layout_groupBytes)(SI), R10
	CMPQ  DX, R9
	JNE   inside
	MOVQ  R9, AX
	IMULQ (core_scheme+scheme_layout+layout_groupBytes)(SI), AX
	SUBQ  AX, R10
	MOVQ  DI, CX
	XORL  DX, DX
inside:
	ATHOME
	JEQ   nowhere
	MATCH
	JNE   candidate
	PASSED
	JCS   far
nowhere: // returns the tags of the home
	NOKEY
	XORL  BX, BX
	RET

// TEXTKEY sets AX to the address of the key in slot BX of the group whose first value is at R10.
#define TEXTKEY \
	LEAQ (R10)(BX*8), AX \
	LEAQ const_textSlotBytes/2(AX)(BX*8), AX

// func(c *core, s string) (key, slot, tags uintptr, h uint64)
TEXT text<>(SB), NOSPLIT, $0-0
	MOVQ  AX, SI
	MOVQ  CX, R9
	MOVQ  CX, X2
	MOVQ  (BX), R8
	MOVQ  -8(BX)(CX*1), R12
	MOVQ  (core_scheme+scheme_hash+hasher_seed+0)(SI), AX
	CMPQ  CX, $16
	JHI   words
	MOVQ  R8, BX
	MOVQ  R12, CX
hash:
	XORQ  BX, AX
	XORQ  (core_scheme+scheme_hash+hasher_seed+8)(SI), CX
	MULQ  CX
	XORQ  DX, AX
	XORQ  R9, AX
	MULQ  (core_scheme+scheme_hash+hasher_seed+16)(SI)
	XORQ  DX, AX
	ANDQ  (core_scheme+scheme_hash+hasher_keep)(SI), AX
	MOVQ  AX, BX
	MOVQ  AX, R13
	TABLE
	MOVL  DI, CX // as LINE, for slots of textSlotBytes
	ANDL  $const_refMask, CX
	ANDQ  $~const_refMask, DI
	LEAQ  ·classes(SB), R11
	MOVL  class_groups(R11)(CX*8), R9
	MOVL  class_slots(R11)(CX*8), R10
	MOVL  BX, DX
	IMULQ R9, DX
	SHRQ  $const_groupShift, DX
	ADDQ  DI, R10
	MOVQ  DX, CX
	SHLQ  $4, CX // groupSlots
	MOVQ  CX, R11
	SHLQ  $4, R11 // textSlotBytes
	ADDQ  R11, R10
	MOVQ  BX, R11
	SHRQ  $(const_quarterShift-6), R11
	ANDL  $(3*64), R11 // quarterSlots*textSlotBytes
	PREFETCHT0 (R10)(R11*1)
	ADDQ  DI, CX
	TAGS
	JZ    none
candidate:
	BSFL  R11, BX
	TEXTKEY
	CMPQ  -(const_textSlotBytes/2)(AX), R13
	JNE   another
	MOVQ  (AX), DX
	MOVQ  DX, R9
	SHRQ  $const_refAddrBits, R9
	ANDQ  core_keyLimit(SI), R9
	MOVQ  X2, R10
	SHLQ  $(64-const_refAddrBits), DX
	SHRQ  $(64-const_refAddrBits-3), DX // blockAlign
	ADDQ  core_head(SI), DX
	CMPQ  R9, R10
	JNE   long
key:
	CMPQ  R10, $16
	JHI   halves
	CMPQ  (DX), R8
	JNE   unlike
	CMPQ  -8(DX)(R10*1), R12
	JNE   unlike
	MOVQ  R13, DI
	RET
none:
	PASSED
	JCS   far
	MOVQ  R13, DI
	RET

words: // of more than 16 bytes: X3 and X4 have the first and the last 16
	MOVOU (BX), X3
	MOVOU -16(BX)(CX*1), X4
	MOVQ  8(BX), DX
	XORQ  R8, AX
	XORQ  (core_scheme+scheme_hash+hasher_seed+8)(SI), DX
	MULQ  DX
	XORQ  DX, AX
	MOVQ  -16(BX)(CX*1), BX
	MOVQ  R12, CX
	JMP   hash

halves:
	MOVOU (DX), X1
	MOVOU -16(DX)(R10*1), X5
	PCMPEQB X3, X1
	PCMPEQB X4, X5
	PAND  X5, X1
	PMOVMSKB X1, DX
	CMPL  DX, $0xFFFF
	JNE   unlike
	MOVQ  R13, DI
	RET

long: // the block may begin with the lengths
	CMPQ  R9, core_keyLimit(SI)
	JNE   unlike
	CMPQ  (DX), R10
	JNE   unlike
	ADDQ  $(2*const_lengthBytes), DX
	JMP   key

unlike: // another key with the hash: restores R10, DX and R9
	SHLQ  $4, BX // textSlotBytes
	LEAQ  -(const_textSlotBytes/2)(AX), R10
	SUBQ  BX, R10
	MOVQ  CX, AX
	MOVBLZX core_shift(SI), CX
	MOVQ  R13, DX
	SHRQ  CX, DX
	MOVQ  core_dir(SI), R9
	MOVL  (R9)(DX*8), DX
	ANDL  $const_refMask, DX
	LEAQ  ·classes(SB), R9
	MOVL  class_groups(R9)(DX*8), R9
	MOVQ  AX, CX
	MOVQ  AX, DX
	SUBQ  DI, DX
	SHRQ  $4, DX // groupSlots
another: // another slot of the group
	LEAL  -1(R11), BX
	ANDL  BX, R11
	JNE   candidate
	MOVQ  R13, BX
	TAG
	PASSED
	JCC   nowhere
far: // the next group, unless that is the home
	INCQ  DX
	ADDQ  $16, CX // groupSlots
	ADDQ  $(16*const_textSlotBytes), R10
	CMPQ  DX, R9
	JNE   inside
	MOVQ  R9, AX
	SHLQ  $8, AX // 16*textSlotBytes
	SUBQ  AX, R10
	MOVQ  DI, CX
	XORL  DX, DX
inside:
	ATHOME
	JEQ   nowhere
	MATCH
	JNE   candidate
	PASSED
	JCS   far
nowhere: // returns the tags of the home
	NOKEY
	RET

// func(c *core, h uint64) byte
TEXT ahead<>(SB), NOSPLIT, $0-0
	MOVQ AX, SI
	TABLE
	LINE(core_scheme+scheme_layout, 4 /* groupSlots */)
	PREFETCHT0 (CX)
	XORL AX, AX
	RET

// PEEK is R1 to R4 in the home of hash BX in the map SI: see shared.go. It jumps to writer if it
// meets one. R13 has the address of the version, SI the version; all else is as after LINE and TAGS.
#define PEEK \
	MOVQ sharedTables_dir(SI), DI \
	MOVQ DI, CX \
	MOVQ BX, DX \
	SHRQ CX, DX \
	ANDQ $~const_classMask, DI \
	LEAQ (DI)(DX*8), R8 \
	MOVQ (R8), DI /* R1 */ \
	CMPQ DI, $const_replacedDirectory \
	JLS  writer \
	MOVQ DI, AX \
	LINE(sharedTables_scheme+scheme_layout, const_sharedHeadShift) \
	LEAQ const_versionOffset(CX), R13 \
	MOVQ (R13), SI /* R2 */ \
	TESTL $1, SI \
	JNE  writer \
	CMPQ AX, (R8) /* R3 */ \
	JNE  writer \
	TAGS // R4

// UNSEEN ends a PEEK that found no key: AX is absent, unless a key with the tag has passed the group
// or R5 fails.
#define UNSEEN \
	MOVBLZX const_overflowOffset(CX), R11 \
	ANDL    $7, BX \
	XORL    AX, AX \
	BTL     BX, R11 \
	JCS     writer \
	CMPQ    SI, (R13) /* R5 */ \
	JNE     writer \
	XORL    BX, BX // no version: see pointer

// func(m *sharedTables, h uint64) (key uintptr, version *uint64, seen uint64)
TEXT peek<>(SB), NOSPLIT, $0-0
	MOVQ  AX, SI
	PEEK
	JZ    none
	BSFL  R11, BX
	IMULQ BX, R12
	LEAQ  (R10)(R12*1), AX
	MOVQ  R13, BX
	MOVQ  SI, CX
	RET
none:
	UNSEEN
	RET
writer:
	MOVL $const_further, AX
	XORL BX, BX
	RET

// func(m *sharedTables, k uint64) (key uintptr, version *uint64, seen, h uint64)
TEXT peekWord<>(SB), NOSPLIT, $0-0
	MOVQ  AX, SI
	MOVQ  BX, X2
	HASH(sharedTables_scheme)
	MOVQ  AX, BX
	MOVQ  AX, X3
	PEEK
	JZ    none
	MOVQ  X2, R8
candidate:
	BSFL  R11, DX
	IMULQ R12, DX
	LEAQ  (R10)(DX*1), AX
	CMPQ  (AX), R8
	JNE   another
	MOVQ  R13, BX
	MOVQ  SI, CX
	MOVQ  X3, DI
	RET
another:
	LEAL  -1(R11), DX
	ANDL  DX, R11
	JNE   candidate
none:
	UNSEEN
	RET
writer:
	MOVL $const_further, AX
	XORL BX, BX
	MOVQ X3, DI
	RET

// func(m *sharedTables, e uintptr, h uint64) (tags, keys uintptr)
TEXT home<>(SB), NOSPLIT, $0-0
	MOVQ AX, SI
	MOVQ BX, DI
	MOVQ CX, BX
	LINE(sharedTables_scheme+scheme_layout, const_sharedHeadShift)
	PREFETCHT0 (CX)
	MOVQ CX, AX
	MOVQ R10, BX
	RET

// PICK sets AX to the address and BX to the number of the free slot for hash BX, of the group with
// tags at CX and its first key at R10. R12 is the step between keys. It moves CX to DI, and jumps to
// full if no slot is free.
#define PICK(full) \
	PXOR X0, X0 \
	MATCH \
	JZ   full \
	MOVQ CX, DI \
	SHRQ $(const_quarterShift-2), BX \
	MOVL BX, CX \
	ANDL $8, CX /* the first slot of the half */ \
	MOVL $0xFF, DX \
	SHLL CX, DX \
	ANDL R11, DX \
	MOVL BX, CX \
	ANDL $12, CX /* of the quarter */ \
	MOVL $0xF, R8 \
	SHLL CX, R8 \
	ANDL R11, R8 \
	TESTL DX, DX \
	CMOVLNE DX, R11 \
	TESTL R8, R8 \
	CMOVLNE R8, R11 \
	BSFL  R11, BX \
	IMULQ BX, R12 \
	LEAQ  (R10)(R12*1), AX

// func(l *layout, tags, keys uintptr, h uint64) (key, slot, room uintptr)
TEXT locked<>(SB), NOSPLIT, $0-0
	MOVQ layout_keyStep(AX), R12
	MOVQ CX, R10
	MOVQ BX, CX
	MOVQ DI, BX
	TAGS
	JZ    none
	BSFL  R11, BX
	IMULQ BX, R12
	LEAQ  (R10)(R12*1), AX
	XORL  CX, CX
	RET
none:
	MOVBLZX const_overflowOffset(CX), R11
	ANDL    $7, BX
	BTL     BX, R11
	JCS     passed
	MOVQ    DI, BX
	PICK(full)
	MOVQ    AX, CX
	XORL    AX, AX
	RET
passed:
	MOVL $const_further, AX
	XORL CX, CX
	RET
full:
	XORL AX, AX
	XORL CX, CX
	RET

// func(l *layout, t table, h uint64) (key, slot, tags uintptr)
TEXT room<>(SB), NOSPLIT, $0-0
	MOVQ AX, SI
	MOVQ BX, DI
	MOVQ BX, R8
	MOVQ CX, BX
	LINE(0, 4 /* groupSlots */)
	ANDL $const_sharedClass, R8
	JNE  shared
free:
	PICK(none)
	MOVQ  DI, CX
	RET
none:
	XORL  AX, AX
	RET
shared:
	MOVQ DX, CX
	SHLQ $const_sharedHeadShift, CX
	ADDQ DI, CX
	JMP  free
