package arena

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// spareOf returns a chunk with a size and an address only.
func spareOf(size int, base uintptr) *sharedChunk {
	return &sharedChunk{mem: make([]byte, size), base: base, dedicated: true}
}

// check verifies the invariants.
func (s *spareSet) check(t *testing.T) {
	t.Helper()
	var last uint64
	bytes := 0
	for _, run := range s.runs {
		if len(run) == 0 && len(s.runs) > 1 || len(run) > maxRun {
			t.Fatalf("a run of %d", len(run))
		}
		for _, c := range run {
			if c.key < last || c.key != spareKey(len(c.chunk.mem)-int(c.chunk.at), c.chunk.base+uintptr(c.chunk.at)) {
				t.Fatalf("key %#x after %#x, of %d bytes at %#x", c.key, last, len(c.chunk.mem), c.chunk.base)
			}
			last = c.key
			bytes += len(c.chunk.mem)
		}
	}
	if bytes != s.bytes {
		t.Fatalf("%d bytes, counted %d", bytes, s.bytes)
	}
}

// all returns the chunks.
func (s *spareSet) all() (chunks []*sharedChunk) {
	for _, run := range s.runs {
		for _, c := range run {
			chunks = append(chunks, c.chunk)
		}
	}
	return chunks
}

// TestSpareSet compares a spareSet with a plain list.
func TestSpareSet(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var s spareSet
	var list []*sharedChunk
	taken, missed := 0, 0
	for i := range 6000 {
		grow := i%3000 < 2000
		if r.IntN(4) != 0 == grow {
			c := spareOf(1+r.IntN(40), uintptr(r.IntN(1<<10)+1)<<r.IntN(8))
			s.add(c)
			list = append(list, c)
		} else {
			size, align := 1+r.IntN(40), 1<<r.IntN(6)
			most := uint(math.MaxUint)
			if r.IntN(2) == 0 {
				most = 2*uint(size) + 1
			}
			c := s.take(size, align, most)
			at := slices.Index(list, c)
			for _, other := range list {
				surely := len(other.mem) >= size+align-1 && uint(len(other.mem)) <= most
				if c == nil && (surely || len(other.mem) == size && other.fits(size, align)) {
					t.Fatalf("%d bytes at multiples of %d: nothing is found, %d bytes at %#x would do", size, align, len(other.mem), other.base)
				}
				if c != nil && surely && len(other.mem) < len(c.mem) {
					t.Fatalf("%d bytes at multiples of %d: %d bytes are found, %d would do", size, align, len(c.mem), len(other.mem))
				}
			}
			switch {
			case c == nil:
				missed++
			case at < 0 || !c.fits(size, align) || uint(len(c.mem)) > most:
				t.Fatalf("%d bytes at multiples of %d of at most %d: %d bytes at %#x, in the set: %t", size, align, most, len(c.mem), c.base, at >= 0)
			default:
				taken++
				list = slices.Delete(list, at, at+1)
			}
		}
		if i%16 == 0 {
			s.check(t)
		}
	}
	if taken == 0 || missed == 0 || len(s.runs) < 3 {
		t.Errorf("%d taken, %d missed; %d runs", taken, missed, len(s.runs))
	}
	moved := s.moveTo(nil)
	if s.check(t); len(moved) != len(list) || s.bytes != 0 || s.take(1, 1, math.MaxUint) != nil {
		t.Errorf("%d chunks moved, want %d; %d bytes left", len(moved), len(list), s.bytes)
	}
	for _, c := range moved {
		s.add(c)
	}
	if s.check(t); len(s.all()) != len(list) {
		t.Errorf("%d chunks, want %d again", len(s.all()), len(list))
	}
}

// TestSpareSetKeepsItsArray: a set that is emptied over and over takes no memory, as a
// Reset does it.
func TestSpareSetKeepsItsArray(t *testing.T) {
	var s spareSet
	c := spareOf(100, 64)
	s.add(c)
	list := make([]*sharedChunk, 1)
	if n := testing.AllocsPerRun(100, func() {
		s.add(s.take(100, 8, math.MaxUint))
		s.moveTo(list[:0])
		s.add(c)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestSpareIsFoundAmongMany: the time of take does not grow with the number of
// spare chunks, since it reads no other chunk.
func TestSpareIsFoundAmongMany(t *testing.T) {
	var s spareSet
	for i := range 40_000 {
		s.add(spareOf(1000+i%100, 64))
	}
	for r, run := range s.runs {
		for i := range run {
			if len(run[i].chunk.mem) != 1050 {
				s.runs[r][i].chunk = nil
			}
		}
	}
	for range 400 {
		if c := s.take(1050, 8, 2*1050); c == nil || len(c.mem) != 1050 {
			t.Fatal("a chunk of the right size is not found")
		}
	}
	for _, run := range s.runs {
		if len(run) > maxRun {
			t.Errorf("a run of %d chunks is moved for one", len(run))
		}
	}
}

// TestRefusalLooksAtFewChunks: a refusal reads no chunk that is too small.
func TestRefusalLooksAtFewChunks(t *testing.T) {
	const size, n = 2000, 300
	s := newSharedOver(t, alloctest.New(t), &SharedOptions{ChunkBytes: 4096, MaxBytes: n * size})
	for range n {
		freehold.Must(s.Alloc(size, 8))
	}
	if s.partial.bytes != 0 {
		t.Errorf("%d bytes in partial chunks, all of which are full", s.partial.bytes)
	}
	s.Reset()
	for range n { // each leaves 504 bytes
		freehold.Must(s.Alloc(size-504, 8))
	}
	if s.partial.bytes != n*size {
		t.Fatalf("%d bytes in partial chunks", s.partial.bytes)
	}
	partial := s.partial
	s.partial.runs = slices.Clone(partial.runs)
	for r, run := range partial.runs {
		s.partial.runs[r] = slices.Clone(run)
		for i := range run {
			s.partial.runs[r][i].chunk = nil
		}
	}
	for _, size := range []int{size, 505} {
		if _, err := s.Alloc(size, 8); !errors.Is(err, freehold.ErrOutOfMemory) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	s.partial = partial
	freehold.Must(s.Alloc(504, 8))
	if s.partial.bytes != (n-1)*size {
		t.Errorf("%d bytes in partial chunks", s.partial.bytes)
	}
	s.partial.check(t)
}

// TestAlignedSparesAreLeftToThoseWhoNeedThem: otherwise each generation would take more
// memory from the parent.
func TestAlignedSparesAreLeftToThoseWhoNeedThem(t *testing.T) {
	var s spareSet
	for i := range 10 {
		s.add(spareOf(100, 1<<12+uintptr(i)*64))
	}
	for range 9 {
		if c := s.take(100, 8, 200); c.base == 1<<12 {
			t.Fatal("the aligned chunk goes to a block that does not need it")
		}
	}
	if c := s.take(100, 1<<12, 200); c == nil {
		t.Error("the aligned chunk is not found")
	}
}

// Reset of many chunks recycles a few, and later Allocs the others as they need them.
func TestResetRecyclesAFewChunks(t *testing.T) {
	const n, size = 3*fewChunks + 7, 1 << 20
	s := NewShared(alloctest.New(t), nil)
	defer s.Close()
	allocAll := func() {
		t.Helper()
		for range n {
			if _, err := s.Alloc(size, 8); err != nil {
				t.Fatal(err)
			}
		}
	}
	allocAll()
	s.Reset()
	if recycled := s.spareDedicated.bytes / size; !s.checked && recycled != fewChunks {
		t.Errorf("Reset recycled %d chunks, want %d", recycled, fewChunks)
	}
	s.mustHoldEachChunkOnce(t)
	before := s.reserved
	allocAll()
	if s.reserved != before {
		t.Errorf("%d bytes are reserved, and %d when the same blocks are allocated again", before, s.reserved)
	}
	s.Reset()
	if st := s.Stats(); st.Spare != n*size || st.Retired != 0 {
		t.Errorf("%+v, want %d bytes spare", st, n*size)
	}
	s.mustHoldEachChunkOnce(t)
}
