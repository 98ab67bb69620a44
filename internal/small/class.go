// Classes: the block sizes to which small requests are rounded up.
//
// Classes are multiples of 8 up to 32 B and multiples of 16 up to 128 B. From there to 32 KiB each
// doubling has eight classes, so rounding wastes at most an eighth and about 4% on average:
//
//	8 16 24 32 48 64 80 96 112 128 | 144 160 … 256 | 288 … 512 | … | … 32768
//
// One table serves every alignment. A request is first rounded up to a multiple of its alignment, a
// power of two. The class of the rounded size is a multiple of that power too. If neighbouring
// classes differ by less than the power, the rounded size is itself a class. Otherwise their
// difference is a multiple of the power.

package small

import (
	"math/bits"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
)

const (
	MaxSize    = 32 << 10 // the largest class in bytes
	MaxAlign   = 4 << 10  // the largest alignment that classes serve
	NumClasses = 75       // with class 0, which means "no class"

	maxBlocks   = 1024     // in a span
	maxBatch    = 128      // in a magazine
	cachedBytes = 64 << 10 // at most, in two magazines of a class of up to 16 KiB

	maxStocked = 128     // magazines with blocks, in one depot
	depotBytes = 1 << 20 // bytes of their blocks
)

// class describes one block size.
type class struct {
	size        uintptr // bytes
	pages       uintptr // pages in a span
	blocks      uintptr // blocks in a span
	batch       uintptr // blocks in a full magazine
	mostStocked int     // magazines with blocks in one depot of a heap without a limit
}

var classes [NumClasses]class

// reciprocals holds ceil(2^32 / size) by class. For an offset into a span, offset * reciprocal is a
// product of 64 bits. Its upper half is the index of the block. Its lower half is less than the
// reciprocal if and only if the offset is a multiple of the size. (Lemire, Kaser and Kurz, "Faster
// Remainder by Direct Computation", 2019.) The reciprocal of class 0 is 0, so this test fails for
// every offset.
//
//go:linkname reciprocals freehold.reciprocals
var reciprocals [1 << 8]uint32

// classOf maps a size to its class, in units of 8 bytes, rounded up. A size above MaxSize, which
// rounding to an alignment may produce, has class 0.
//
//go:linkname classOf freehold.classOf
var classOf [(MaxSize+MaxAlign)/8 + 1]uint8

func init() {
	c := 1
	for size := uintptr(8); size <= MaxSize; size += classStep(size) {
		classes[c] = newClass(size)
		reciprocals[c] = uint32((1<<32 + uint64(size) - 1) / uint64(size))
		c++
	}
	if c != NumClasses {
		panic("freehold: small: NumClasses is wrong")
	}
	for i, c := 1, 1; i <= MaxSize/8; i++ {
		if uintptr(i)*8 > classes[c].size {
			c++
		}
		classOf[i] = uint8(c)
	}
}

// classStep returns the distance from a class to the next larger one.
func classStep(size uintptr) uintptr {
	switch {
	case size < 32:
		return 8
	case size < 128:
		return 16
	}
	return 1 << (bits.Len(uint(size)) - 4)
}

// newClass chooses the length of a class's spans: the shortest that holds 32 KiB of blocks, but 4
// to 1024 blocks, and wastes at most a 32nd at its end.
func newClass(size uintptr) class {
	minBlocks := max(4, min(maxBlocks, (32<<10)/size))
	n := (minBlocks*size + pages.PageBytes - 1) / pages.PageBytes
	for (n*pages.PageBytes)%size > n*pages.PageBytes/32 {
		n++
	}
	batch := max(2, min(maxBatch, cachedBytes/2/size))
	return class{
		size:        size,
		pages:       n,
		blocks:      min(n*pages.PageBytes/size, maxBlocks),
		batch:       batch,
		mostStocked: int(min(maxStocked, depotBytes/(batch*size))),
	}
}

// ClassSize returns the block size of a class, in bytes.
func ClassSize(class uint8) int { return int(classes[class].size) }

// SpanPages returns the number of pages in a span of the class.
func SpanPages(class uint8) uintptr { return classes[class].pages }

// ClassFor returns the class of a request, or 0 if no class serves it.
func ClassFor(size, align int) uint8 {
	if !IsSmall(size, align) {
		return 0
	}
	return ClassOf(size, align)
}

// IsSmall reports whether ClassOf may be called: size is from 0 to MaxSize, and align is a power of
// two of at most MaxAlign.
func IsSmall(size, align int) bool {
	mask := uint(align) - 1
	return uint(size) <= MaxSize && mask < MaxAlign && uint(align)&mask == 0
}

// ClassOf returns the class of a request for which IsSmall is true, or 0. A size of 0 has class 0.
// ClassOf has no bounds check: the leaves of package heap call it, and without optimizations (-N) a
// check takes more stack than a leaf may use.
func ClassOf(size, align int) uint8 {
	mask := (uint(align) - 1) | 7
	return *(*uint8)(unsafe.Add(unsafe.Pointer(&classOf), (uint(size)+mask)&^mask/8))
}
