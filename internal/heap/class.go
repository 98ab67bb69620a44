// Classes: the block sizes that small requests are rounded up to.
//
// Multiples of 8 to 32 and of 16 to 128, then eight sizes per doubling to
// 32 KiB, so that rounding wastes at most an eighth and about 4% on average:
//
//	8 16 24 32 48 64 80 96 112 128 | 144 160 … 256 | 288 … 512 | … | … 32768
//
// A size rounded up to a multiple of a power of two lands in a class that is a
// multiple of that power too: where classes are closer together than the power, the
// rounded size is itself a class, and where they are farther apart their distance
// is a multiple of it. So one table serves every alignment.

package heap

import (
	"math/bits"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
)

const (
	maxSmall   = 32 << 10 // the largest class in bytes; larger blocks are runs
	maxAlign   = 4 << 10  // the largest alignment that classes serve
	numClasses = 75       // class 0 means "no class"
	maxBlocks  = 1024     // the most blocks in a span

	maxBatch    = 128      // the most blocks that move between cache and stock at once
	cachedBytes = 64 << 10 // what a cache holds of one class, unless that is too few blocks
)

// class describes one block size.
type class struct {
	size   uintptr // bytes
	pages  uintptr // pages in a span
	blocks uintptr // blocks in a span
	batch  uintptr // blocks that move between cache and stock at once
}

var classes [numClasses]class

// reciprocals holds ceil(2^32 / size) by class. Times an offset into a span it
// has the block's index in its upper half, and in its lower half less than the
// reciprocal if and only if the offset is a multiple of the size. (Lemire, Kaser
// and Kurz, "Faster Remainder by Direct Computation", 2019.) Class 0 has 0, of
// which nothing is a multiple.
var reciprocals [1 << 8]uint32

// classOf maps a size, in units of 8 bytes rounded up, to its class. It reaches
// past maxSmall by what rounding to an alignment can add; there it holds 0.
var classOf [(maxSmall+maxAlign)/8 + 1]uint8

func init() {
	c := 1
	for size := uintptr(8); size <= maxSmall; size += classStep(size) {
		classes[c] = newClass(size)
		reciprocals[c] = uint32((1<<32 + uint64(size) - 1) / uint64(size))
		c++
	}
	if c != numClasses {
		panic("freehold: heap: numClasses is wrong")
	}
	for i, c := 1, 1; i <= maxSmall/8; i++ {
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

// newClass chooses the span of a class: the shortest that holds minBlocks,
// which is about 32 KiB, and wastes at most a 32nd at its end.
func newClass(size uintptr) class {
	minBlocks := max(4, min(maxBlocks, (32<<10)/size))
	n := (minBlocks*size + pages.PageBytes - 1) / pages.PageBytes
	for (n*pages.PageBytes)%size > n*pages.PageBytes/32 {
		n++
	}
	return class{
		size:   size,
		pages:  n,
		blocks: min(n*pages.PageBytes/size, maxBlocks),
		batch:  max(2, min(maxBatch, cachedBytes/2/size)),
	}
}

// classFor returns the class of a request, 0 if no class serves it: it is large,
// empty or none.
func classFor(size, align int) uint8 {
	if !isSmall(size, align) {
		return 0
	}
	return smallClass(size, align)
}

// isSmall reports whether classOf has the class of a request: it is neither large nor none. An
// empty one has class 0.
func isSmall(size, align int) bool {
	mask := uint(align) - 1
	return uint(size) <= maxSmall && mask < maxAlign && uint(align)&mask == 0
}

// smallClass is classFor a request that isSmall. It looks into classOf without a check of the
// index, since leaves call it: with -N a check takes more stack than they may.
func smallClass(size, align int) uint8 {
	mask := (uint(align) - 1) | 7
	return *(*uint8)(unsafe.Add(unsafe.Pointer(&classOf), (uint(size)+mask)&^mask/8))
}
