// Conformance: what every freehold.Allocator promises, as tests.

package alloctest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/poison"
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

// sizes are block sizes at which allocators change their behaviour.
var sizes = []struct {
	size int
	why  string
}{
	{1, "the smallest block"},
	{2, "less than a word"},
	{7, "just below a word"},
	{8, "a word"},
	{9, "just above a word"},
	{15, "just below the usual smallest class"},
	{16, "the usual smallest class"},
	{17, "just above it"},
	{24, "between powers of two"},
	{63, "just below a cache line"},
	{64, "a cache line"},
	{65, "just above it"},
	{127, "just below where the spacing of classes often widens"},
	{128, "where it does"},
	{129, "just above it"},
	{1000, "no power of two"},
	{4095, "just below a page"},
	{4096, "a page"},
	{4097, "just above it"},
	{32 << 10, "the usual largest class"},
	{32<<10 + 1, "just above it: a large block"},
	{64 << 10, "the engine's page"},
	{64<<10 + 1, "just above it"},
	{1 << 20, "many pages"},
	{2 << 20, "a huge page"},
	{2<<20 + 1, "just above it"},
	{3 << 20, "more than a huge page"},
	{5 << 20, "several huge pages"},
}

// large is the size above which a test holds few blocks and tries few pairs of
// sizes: each block has its own pages, which are slow to fill.
const large = 64 << 10

// some returns the number of blocks of a size that a test holds: n, or two if they
// are large.
func some(n, size int) int {
	if size > large {
		return 2
	}
	return n
}

// must allocates a block and checks it. It returns nil if the allocator refuses a
// block that the options let it refuse.
func must(t testing.TB, a freehold.Allocator, o Options, size, align int) []byte {
	t.Helper()
	b, err := a.Alloc(size, align)
	if err != nil {
		if size <= o.MaxSize && align <= o.MaxAlign || !errors.Is(err, freehold.ErrOutOfMemory) {
			t.Fatalf("Alloc(%d, %d): %v", size, align, err)
		}
		return nil
	}
	if fault := blockFault(b, size, align); fault != "" {
		t.Fatalf("Alloc(%d, %d): %s", size, align, fault)
	}
	return b
}

// A shelf is a list of live blocks, each with a pattern.
type shelf struct {
	t      testing.TB
	a      freehold.Allocator
	blocks []held
}

// add fills b with a pattern and keeps it.
func (s *shelf) add(b []byte) {
	h := held{b: b, p: newPattern()}
	h.p.fill(b)
	s.blocks = append(s.blocks, h)
}

// checkEdges verifies both ends of every pattern. clear finds damage between them.
func (s *shelf) checkEdges(when string) {
	s.t.Helper()
	for _, h := range s.blocks {
		if i := h.p.damagedEdge(h.b); i >= 0 {
			s.t.Fatalf("%s: byte %d of the block of %d bytes at %#x has changed", when, i, len(h.b), addrOf(h.b))
		}
	}
}

// check verifies every pattern.
func (s *shelf) check(when string) {
	s.t.Helper()
	for _, h := range s.blocks {
		if i := h.p.damage(h.b, 0); i >= 0 {
			s.t.Fatalf("%s: byte %d of the block of %d bytes at %#x has changed", when, i, len(h.b), addrOf(h.b))
		}
	}
}

// clear verifies every pattern and frees the blocks, from both ends inwards, so
// that neither the order of allocation nor its reverse is the only one tested.
func (s *shelf) clear(when string) {
	s.t.Helper()
	s.check(when)
	for i, j := 0, len(s.blocks)-1; i <= j; i, j = i+1, j-1 {
		s.a.Free(s.blocks[i].b)
		if i < j {
			s.a.Free(s.blocks[j].b)
		}
	}
	s.blocks = nil
}

// checkSizes: blocks have the size asked for and never overlap.
func checkSizes(t testing.TB, a freehold.Allocator, o Options) {
	s := &shelf{t: t, a: a}
	for range 2 { // the second round reuses memory
		for _, c := range sizes {
			for range some(4, c.size) {
				if b := must(t, a, o, c.size, 1); b != nil {
					s.add(b)
				}
			}
			s.checkEdges(fmt.Sprintf("after Alloc of %d bytes (%s)", c.size, c.why))
		}
		s.clear("at the end")
	}
}

// checkAlignments: blocks are at multiples of any power of two.
func checkAlignments(t testing.TB, a freehold.Allocator, o Options) {
	s := &shelf{t: t, a: a}
	aligns := []struct {
		align int
		why   string
	}{
		{1, "none"}, {2, "uint16"}, {4, "uint32"}, {8, "a word"},
		{16, "the usual smallest class"}, {32, "AVX"}, {64, "a cache line, AVX-512"},
		{128, "two cache lines"}, {512, "a disk sector"}, {1024, "above most headers"},
		{4096, "a page"}, {8192, "two pages"}, {64 << 10, "the engine's page"},
		{1 << 20, "larger than most blocks"}, {2 << 20, "a huge page"}, {4 << 20, "more than that"},
	}
	for _, c := range aligns {
		for _, size := range []int{1, 8, 24, 100, 640, 4097, 40000, 1<<20 + 1} {
			for range some(3, size) {
				if b := must(t, a, o, size, c.align); b != nil {
					s.add(b)
				}
			}
		}
		s.checkEdges(fmt.Sprintf("after blocks aligned to %d (%s)", c.align, c.why))
	}
	s.clear("at the end")
}

// checkZeroed: Zeroed returns zeros, in reused memory too.
func checkZeroed(t testing.TB, a freehold.Allocator, o Options) {
	for _, c := range sizes {
		if c.size > o.MaxSize {
			continue
		}
		for _, align := range []int{1, min(64, o.MaxAlign)} {
			dirty := make([][]byte, some(8, c.size))
			clean := make([][]byte, len(dirty))
			for i := range dirty {
				dirty[i] = must(t, a, o, c.size, align)
				poison.FillBytes(dirty[i], 0xFF)
			}
			for _, b := range dirty {
				a.Free(b)
			}
			for i := range clean {
				b, err := a.Zeroed(c.size, align)
				if err != nil {
					t.Fatalf("Zeroed(%d, %d): %v", c.size, align, err)
				}
				if fault := blockFault(b, c.size, align); fault != "" {
					t.Fatalf("Zeroed(%d, %d): %s", c.size, align, fault)
				}
				if j := poison.Other(b, 0); j >= 0 {
					t.Fatalf("Zeroed(%d, %d): byte %d is %#x (%s)", c.size, align, j, b[j], c.why)
				}
				poison.FillBytes(b, 0xFF)
				clean[i] = b
			}
			for _, b := range clean {
				a.Free(b)
			}
		}
	}
}

// checkAppend: append to a block copies it to the Go heap and leaves the memory
// behind it unchanged.
func checkAppend(t testing.TB, a freehold.Allocator, o Options) {
	s := &shelf{t: t, a: a}
	for _, size := range []int{1, 8, 16, 24, 100, 4096} {
		if size > o.MaxSize {
			continue
		}
		for range 16 {
			s.add(must(t, a, o, size, 1))
		}
	}
	for _, h := range s.blocks {
		_ = append(h.b, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF)
	}
	s.clear("after append to each block")
}

// checkResize: contents survive, neighbours are unchanged, and a Resize that
// reports false changes nothing.
func checkResize(t testing.TB, a freehold.Allocator, o Options) {
	s := &shelf{t: t, a: a}
	for _, align := range []int{1, 16, 4096} {
		if align > o.MaxAlign {
			continue
		}
		for _, from := range sizes {
			for _, to := range sizes {
				smaller, larger := min(from.size, to.size), max(from.size, to.size)
				if larger > o.MaxSize {
					continue
				}
				// For large sizes, one alignment and a few small other sizes are
				// enough.
				if larger > large && (align != 16 || smaller > 1 && smaller < 4096) {
					continue
				}
				s.add(must(t, a, o, 24, 1))
				b := must(t, a, o, from.size, align)
				s.add(must(t, a, o, 24, 1))
				p := newPattern()
				p.fill(b)
				kept := from.size
				if r, ok := a.Resize(b, to.size); ok {
					if fault := blockFault(r, to.size, align); fault != "" {
						t.Fatalf("Resize of %d bytes to %d: %s", from.size, to.size, fault)
					}
					b, kept = r, min(from.size, to.size)
				}
				if i := p.damage(b[:kept], 0); i >= 0 {
					t.Fatalf("Resize of %d bytes to %d: byte %d has changed", from.size, to.size, i)
				}
				a.Free(b)
				s.clear(fmt.Sprintf("after Resize of %d bytes to %d", from.size, to.size))
			}
		}
	}
}

// checkEmpty: size 0 is valid everywhere, and Free accepts nil and empty blocks.
func checkEmpty(t testing.TB, a freehold.Allocator, o Options) {
	for range 100 {
		for _, call := range []func(size, align int) ([]byte, error){a.Alloc, a.Zeroed} {
			b, err := call(0, 1)
			if err != nil || b == nil || len(b) != 0 || cap(b) != 0 {
				t.Fatalf("a block of size 0 is nil: %t, len %d, cap %d, error %v", b == nil, len(b), cap(b), err)
			}
			if r, ok := a.Resize(b, 8); ok {
				t.Fatalf("Resize of an empty block to 8 bytes gave %d; no alignment is known for them", len(r))
			}
			if r, ok := a.Resize(b, 0); !ok || r == nil || len(r) != 0 {
				t.Fatalf("Resize of an empty block to 0 bytes: %t, nil: %t, len %d", ok, r == nil, len(r))
			}
			a.Free(b)
		}
		a.Free(nil)
		a.Free([]byte{})
	}

	b, err := freehold.Realloc(a, nil, 24, 8)
	if err != nil || len(b) != 24 {
		t.Fatalf("Realloc of nil to 24 bytes: %d bytes, %v", len(b), err)
	}
	b, err = freehold.Realloc(a, b, 0, 8)
	if err != nil || b == nil || len(b) != 0 {
		t.Fatalf("Realloc to 0 bytes: nil: %t, %d bytes, %v", b == nil, len(b), err)
	}
	a.Free(b)
	if b = must(t, a, o, 24, 8); b == nil {
		t.Fatal("out of memory after empty blocks only")
	}
	a.Free(b)
}

// checkArguments: wrong arguments panic with a message and do no harm.
func checkArguments(t testing.TB, a freehold.Allocator, o Options) {
	s := &shelf{t: t, a: a}
	for range 8 {
		s.add(must(t, a, o, 24, 8))
	}
	b := s.blocks[0].b
	calls := []struct {
		name string
		call func()
	}{
		{"Alloc(-1, 8)", func() { a.Alloc(-1, 8) }},
		{"Alloc(math.MinInt, 8)", func() { a.Alloc(math.MinInt, 8) }},
		{"Zeroed(-1, 8)", func() { a.Zeroed(-1, 8) }},
		{"Zeroed(math.MinInt, 8)", func() { a.Zeroed(math.MinInt, 8) }},
		{"Resize(b, -1)", func() { a.Resize(b, -1) }},
		{"Resize(b, math.MinInt)", func() { a.Resize(b, math.MinInt) }},
		{"Alloc(8, 0)", func() { a.Alloc(8, 0) }},
		{"Alloc(8, -8)", func() { a.Alloc(8, -8) }},
		{"Alloc(8, math.MinInt)", func() { a.Alloc(8, math.MinInt) }}, // one bit, yet no power of two
		{"Alloc(8, 3)", func() { a.Alloc(8, 3) }},
		{"Alloc(8, 24)", func() { a.Alloc(8, 24) }},
		{"Zeroed(8, 0)", func() { a.Zeroed(8, 0) }},
		{"Zeroed(8, 12)", func() { a.Zeroed(8, 12) }},
	}
	for _, c := range calls {
		mustPanic(t, c.name, c.call)
		s.check("after " + c.name)
	}
	for range 8 {
		s.add(must(t, a, o, 24, 8))
	}
	s.clear("at the end")
}

// mustPanic checks that call panics with a message of freehold's form.
func mustPanic(t testing.TB, name string, call func()) {
	t.Helper()
	defer func() {
		t.Helper()
		switch r := recover(); {
		case r == nil:
			t.Fatalf("%s did not panic", name)
		case !strings.HasPrefix(fmt.Sprint(r), "freehold: "):
			t.Fatalf("%s panicked with %q, which does not begin with %q", name, fmt.Sprint(r), "freehold: ")
		}
	}()
	call()
}

// checkOutOfMemory: impossible sizes are errors and change nothing.
func checkOutOfMemory(t testing.TB, a freehold.Allocator, o Options) {
	s := &shelf{t: t, a: a}
	for range 8 {
		s.add(must(t, a, o, 24, 8))
	}
	huge := []struct {
		size uint64
		why  string
	}{
		{math.MaxInt, "any rounding up overflows"},
		{math.MaxInt - 15, "rounding up to 16 does not, to a page does"},
		{math.MaxInt - 1<<16, "rounding up does not, adding a header might"},
		{1 << 62, "a power of two"},
		{1<<62 + 1, "rounding up to a power of two overflows"},
		{1 << 48, "all of the address space, and it fits a table of pages"},
	}
	for _, c := range huge {
		if c.size > math.MaxInt {
			continue // on 32 bits
		}
		size := int(c.size)
		for _, align := range []int{1, 8, 4096} {
			refused := func(call string, b []byte, err error) {
				t.Helper()
				if !errors.Is(err, freehold.ErrOutOfMemory) || b != nil {
					t.Fatalf("%s of %d bytes (%s): %d bytes and error %v; want nil and ErrOutOfMemory", call, size, c.why, len(b), err)
				}
			}
			b, err := a.Alloc(size, align)
			refused("Alloc", b, err)
			b, err = a.Zeroed(size, align)
			refused("Zeroed", b, err)
			if r, ok := a.Resize(s.blocks[0].b, size); ok {
				t.Fatalf("Resize to %d bytes (%s) gave %d", size, c.why, len(r))
			}
			b, err = freehold.Realloc(a, s.blocks[0].b, size, 8)
			refused("Realloc", b, err)
			s.check("after " + c.why)
		}
	}
	for _, align := range []int{1 << 30, math.MaxInt/2 + 1} {
		b, err := a.Alloc(8, align)
		if err == nil {
			if fault := blockFault(b, 8, align); fault != "" {
				t.Fatalf("Alloc(8, %d): %s", align, fault)
			}
			a.Free(b)
		} else if !errors.Is(err, freehold.ErrOutOfMemory) {
			t.Fatalf("Alloc(8, %d): %v", align, err)
		}
	}
	for range 8 {
		s.add(must(t, a, o, 24, 8))
	}
	s.clear("at the end")
}

// checkOwner: an Owner owns its own blocks and no other memory.
func checkOwner(t testing.TB, a freehold.Allocator, o Options) {
	owner, ok := a.(freehold.Owner)
	if !ok {
		t.Skip("not an Owner")
	}
	if owner.Owns(nil) || owner.Owns([]byte{}) {
		t.Fatal("owns an empty slice")
	}
	if owner.Owns(make([]byte, 64)) {
		t.Fatal("owns a slice on the Go heap")
	}
	var local [64]byte
	if owner.Owns(local[:]) {
		t.Fatal("owns a local variable")
	}
	canTell := false
	for _, c := range sizes {
		b := must(t, a, o, c.size, 1)
		canTell = canTell || owner.Owns(b)
		a.Free(b)
	}
	if !canTell {
		t.Skip("owns none of its blocks")
	}
	for _, c := range sizes {
		b := must(t, a, o, c.size, 1)
		if b == nil {
			continue
		}
		if !owner.Owns(b) {
			t.Fatalf("does not own its block of %d bytes (%s)", c.size, c.why)
		}
		if !owner.Owns(b[c.size-1:]) {
			t.Fatalf("does not own the last byte of its block of %d bytes (%s)", c.size, c.why)
		}
		if owner.Owns(b[:0]) {
			t.Fatal("owns an empty part of a block")
		}
		a.Free(b)
	}
}

// checkMistakes: a mistake in Options.Detects panics and does no harm.
func checkMistakes(t testing.TB, a freehold.Allocator, o Options) {
	if o.Detects == 0 {
		t.Skip("detects no mistakes")
	}
	s := &shelf{t: t, a: a}
	for _, c := range sizes {
		if c.size > o.MaxSize {
			continue
		}
		for range 3 {
			s.add(must(t, a, o, c.size, 1))
		}
		b := s.blocks[1].b
		if o.Detects&ForeignFree != 0 {
			foreign := make([]byte, c.size)
			mustPanic(t, fmt.Sprintf("Free of %d bytes of Go memory", c.size), func() { a.Free(foreign) })
		}
		if o.Detects&InteriorFree != 0 {
			for _, from := range []int{1, 8, 16, c.size / 2, c.size - 1} {
				if from > 0 && from < c.size {
					mustPanic(t, fmt.Sprintf("Free of a block of %d bytes from byte %d on", c.size, from), func() { a.Free(b[from:]) })
				}
			}
		}
		if o.Detects&ShortFree != 0 {
			for _, to := range []int{1, c.size / 2, c.size - 1} {
				if to > 0 && to < c.size {
					mustPanic(t, fmt.Sprintf("Free of the first %d bytes of a block of %d", to, c.size), func() { a.Free(b[:to:to]) })
				}
			}
		}
		s.check("after the mistakes")
		if o.Detects&DoubleFree != 0 {
			d := must(t, a, o, c.size, 1)
			a.Free(d)
			mustPanic(t, fmt.Sprintf("a second Free of a block of %d bytes", c.size), func() { a.Free(d) })
			// If it had been freed twice, it would be allocated twice.
			for range 3 {
				s.add(must(t, a, o, c.size, 1))
			}
		}
		s.clear(fmt.Sprintf("after mistakes with blocks of %d bytes", c.size))
	}
}

// randomProgram returns a program for RunProgram.
func randomProgram(r *rand.Rand, instructions int) []byte {
	prog := make([]byte, instructions*instructionBytes)
	for i := range prog {
		prog[i] = byte(r.Uint32())
	}
	return prog
}

// checkPrograms: random programs give correct results.
func checkPrograms(t testing.TB, a freehold.Allocator, o Options) {
	programs := 8
	if testing.Short() {
		programs = 2
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range programs {
		RunProgram(t, a, randomProgram(r, 150))
	}
}

// checkConcurrent: random programs in several goroutines at once.
func checkConcurrent(t testing.TB, a freehold.Allocator, o Options) {
	if !o.Concurrent {
		t.Skip("not for concurrent use")
	}
	programs := 3 // of each goroutine
	if testing.Short() {
		programs = 1
	}
	var wg sync.WaitGroup
	for g := range 4 {
		r := rand.New(rand.NewPCG(5, uint64(g)))
		wg.Go(func() {
			for range programs {
				RunProgram(t, a, randomProgram(r, 150))
			}
		})
	}
	wg.Wait()
}

// checkHandOver: a goroutine may free blocks of another, and a third may reuse
// them.
func checkHandOver(t testing.TB, a freehold.Allocator, o Options) {
	if !o.Concurrent {
		t.Skip("not for concurrent use")
	}
	const makers, rounds = 2, 2000
	blocks := make(chan held, 64)
	var making, taking sync.WaitGroup
	for g := range makers {
		making.Go(func() {
			for i := range rounds {
				b, err := a.Alloc(1+(i*37+g*11)%min(1000, o.MaxSize), 8)
				if err != nil {
					t.Errorf("Alloc: %v", err)
					return
				}
				h := held{b: b, p: newPattern()}
				h.p.fill(b)
				blocks <- h
			}
		})
		taking.Go(func() {
			for h := range blocks {
				if i := h.p.damage(h.b, 0); i >= 0 {
					t.Errorf("byte %d of a block of %d bytes has changed on the way to another goroutine", i, len(h.b))
				}
				poison.FillBytes(h.b, 0xFF)
				a.Free(h.b)
			}
		})
	}
	making.Wait()
	close(blocks)
	taking.Wait()
}
