// Conformance: the contract of freehold.Allocator as subtests.
//
// blocks.go checks the memory of blocks, calls.go the edges of each call, and random.go random
// programs, by one goroutine and by several. shelf.go keeps the live blocks of a check.

package alloctest

import (
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
)

// Options says what [TestAllocator] expects beyond the contract of
// [freehold.Allocator]; nil means nothing.
type Options struct {
	// MaxSize is the largest block, in bytes, that the allocator must provide. It
	// may refuse larger ones as out of memory. 0 means 3 MiB; a negative value panics.
	MaxSize int

	// MaxAlign is the largest alignment that it must provide. 0 means 4096; a
	// negative value panics.
	MaxAlign int

	// Concurrent says that the allocator is safe for concurrent use, and adds
	// tests with several goroutines.
	Concurrent bool

	// Detects says which mistakes the allocator always detects, and adds tests
	// that it panics at each and stays intact.
	Detects Mistake
}

// Mistake is a set of ways to call Free wrongly.
type Mistake int

const (
	DoubleFree   Mistake = 1 << iota // of a block that has just been freed
	ForeignFree                      // of Go memory
	InteriorFree                     // of a slice that begins inside a block
	ShortFree                        // of a slice shorter than its block

	// AllMistakes is all of the above.
	AllMistakes = DoubleFree | ForeignFree | InteriorFree | ShortFree
)

// TestAllocator checks the contract of [freehold.Allocator] in subtests. Each
// subtest calls new for an allocator of its own. new may use t.Cleanup to close or
// inspect the allocator after all of its blocks are freed. If it is a
// [freehold.Owner], TestAllocator checks Owns too, unless Owns is false for its
// own blocks, as in a wrapper around an allocator that is not an Owner.
//
// Live memory stays below 80 MiB per goroutine, and there are four goroutines if
// Options.Concurrent is set. An arena keeps freed memory and needs up to 512 MiB
// in a subtest. TestAllocator takes a second or, with -race, ten. With -short it
// runs fewer random programs.
func TestAllocator(t *testing.T, new func(t *testing.T) freehold.Allocator, o *Options) {
	opts := Options{}
	if o != nil {
		opts = *o
	}
	arg.AtLeast("alloctest.TestAllocator", "Options.MaxSize", opts.MaxSize, 0)
	arg.AtLeast("alloctest.TestAllocator", "Options.MaxAlign", opts.MaxAlign, 0)
	if opts.MaxSize == 0 {
		opts.MaxSize = 3 << 20
	}
	if opts.MaxAlign == 0 {
		opts.MaxAlign = 4096
	}
	for _, c := range conformance {
		t.Run(c.name, func(t *testing.T) { c.check(t, new(t), opts) })
	}
}

// conformance lists the subtests. They take testing.TB so that the tests of this
// package can run them on allocators with defects.
var conformance = []struct {
	name  string
	check func(t testing.TB, a freehold.Allocator, o Options)
}{
	{"Sizes", checkSizes},
	{"Alignments", checkAlignments},
	{"Zeroed", checkZeroed},
	{"Append", checkAppend},
	{"Resize", checkResize},
	{"Empty", checkEmpty},
	{"Arguments", checkArguments},
	{"OutOfMemory", checkOutOfMemory},
	{"Owner", checkOwner},
	{"Mistakes", checkMistakes},
	{"Programs", checkPrograms},
	{"Concurrent", checkConcurrent},
	{"HandOver", checkHandOver},
}
