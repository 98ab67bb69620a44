package cuckoo

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/seam"
)

const chunkBytes = 1 << 10

// contains reports whether a reader finds w. It may be beside a writer.
func (ix *Index) contains(w uint64) bool {
	for {
		moves := ix.Moves()
		if ix.Buckets() > 0 && ix.Find(tagOf(w), ^uint64(0), w) != nil {
			return true
		}
		if moves&1 == 0 && ix.Moves() == moves {
			return false
		}
	}
}

// TestModel: random steps on an index and on a set of the words that it has. Few tags fill their
// homes, so that Insert refuses.
func TestModel(t *testing.T) {
	for _, tags := range []uint64{3, 200, 1 << TagBits} {
		parent := alloctest.New(t)
		r := rand.New(rand.NewPCG(1, tags))
		var ix Index
		ix.Init(chunkBytes, new(pin.Holders), new(seam.Seam))
		var words []uint64
		at := map[uint64]int{} // of words
		gone := func(w uint64) {
			last := len(words) - 1
			words[at[w]], at[words[last]] = words[last], at[w]
			words = words[:last]
			delete(at, w)
		}
		allGone := func(words []uint64) {
			for _, w := range words {
				gone(w)
			}
		}
		refused, next := 0, uint64(1)
		for step := range 40_000 {
			grows := step/5_000%2 == 0
			switch n := r.IntN(100); {
			case n == 0:
				ix.Shrink(math.MaxInt, allGone)
				ix.Cut(parent)
			case n < 3 && ix.Buckets() > chunkBytes/BucketBytes:
				allGone(ix.Merge())
			case n == 3 && !grows && step%1000 == 0:
				ix.Clear()
				words, at = words[:0], map[uint64]int{}
			case (n < 70) == grows || len(words) == 0:
				if !ix.Grow(1) {
					if err := ix.AddChunk(parent); err != nil || !ix.Grow(1) {
						t.Fatal("no room after a chunk: ", err)
					}
				}
				w := r.Uint64N(tags)<<tagShift | next
				if next++; !ix.Insert(w) {
					refused++
					break
				}
				at[w] = len(words)
				words = append(words, w)
			default:
				w := words[r.IntN(len(words))]
				slot := ix.Find(tagOf(w), ^uint64(0), w)
				if slot == nil || !ix.Has(slot, tagOf(w)) {
					t.Fatalf("step %d: %#x is not found", step, w)
				}
				ix.Remove(slot)
				gone(w)
				if ix.contains(w) {
					t.Fatalf("step %d: %#x is found after Remove", step, w)
				}
			}
			if step%100 == 0 {
				ix.Check()
				for _, w := range words {
					if !ix.contains(w) {
						t.Fatalf("step %d: %#x is lost", step, w)
					}
				}
			}
			if ix.Len() != len(words) {
				t.Fatalf("step %d: %d slots, want %d", step, ix.Len(), len(words))
			}
		}
		if (refused > 0) != (tags < 1<<TagBits) {
			t.Errorf("of %d tags, %d words were refused", tags, refused)
		}
		ix.Close(parent)
	}
}

// TestFull: an Insert takes the emptier home, so that few displace slots. Two homes and three moves
// fill nearly all slots before one is refused.
func TestFull(t *testing.T) {
	parent := alloctest.New(t)
	r := rand.New(rand.NewPCG(1, 1))
	var ix Index
	ix.Init(1<<16, new(pin.Holders), new(seam.Seam))
	if err := ix.AddChunk(parent); err != nil || !ix.Split() || ix.Split() {
		t.Fatal("a chunk is split once: ", err)
	}
	all := int(ix.Buckets()) * Slots
	for ix.Insert(r.Uint64() | 1) {
		if n := ix.Moves() / 2; n > 0 && ix.Len() == all*6/10 {
			t.Errorf("%d of %d slots are used, and %d Inserts displaced others", ix.Len(), all, n)
		}
	}
	if ix.Len()*100 < all*95 {
		t.Errorf("%d of %d slots are used when one is refused", ix.Len(), all)
	}
	ix.Close(parent)
}

// TestClear: Clear empties slots and notes. Shrink removes no more buckets than it may.
func TestClear(t *testing.T) {
	parent := alloctest.New(t)
	var ix Index
	ix.Init(chunkBytes, new(pin.Holders), new(seam.Seam))
	for ix.Chunks() < 3 {
		if err := ix.AddChunk(parent); err != nil {
			t.Fatal(err)
		}
		for ix.Split() {
		}
	}
	for i := range ix.Buckets() {
		ix.Bucket(i).Note = 1
		ix.Insert(uint64(i)<<tagShift | 1)
	}
	ix.Clear()
	for i := range ix.Buckets() {
		if b := ix.Bucket(i); b.Note != 0 || b.room() < Slots {
			t.Errorf("bucket %d has a note of %d and %d empty slots", i, b.Note, b.room())
		}
	}
	ix.Check()
	before := ix.Buckets()
	if ix.Shrink(3, nil); ix.Buckets() != before-3 {
		t.Errorf("%d buckets are removed, want 3", before-ix.Buckets())
	}
	ix.Close(parent)
}

// TestSteps: a new bucket has the note of the one whose slots it takes, and a step that moves a
// slot changes the sequence counter, which is even after it.
func TestSteps(t *testing.T) {
	parent := alloctest.New(t)
	r := rand.New(rand.NewPCG(1, 1))
	var ix Index
	ix.Init(chunkBytes, new(pin.Holders), new(seam.Seam))
	if err := ix.AddChunk(parent); err != nil || !ix.Split() {
		t.Fatal(err)
	}
	for i := range ix.Buckets() {
		ix.Bucket(i).Note = 1
	}
	var words []uint64
	places := func() (at []*atomic.Uint64) {
		for _, w := range words {
			at = append(at, ix.Find(tagOf(w), ^uint64(0), w))
		}
		return at
	}
	moved := map[string]int{}
	step := func(name string, do func()) {
		before, moves := places(), ix.Moves()
		do()
		for i, at := range places()[:len(before)] {
			if at == before[i] {
				continue
			}
			if moved[name]++; ix.Moves() == moves {
				t.Fatalf("%s moves %#x, and the counter stays", name, words[i])
			}
		}
		if ix.Moves()&1 != 0 {
			t.Fatalf("the counter is odd after %s", name)
		}
	}
	for range 300 {
		for range 6 {
			w := r.Uint64() | 1
			step("Insert", func() {
				if ix.Insert(w) {
					words = append(words, w)
				}
			})
		}
		step("Split", func() {
			for !ix.Split() {
				if err := ix.AddChunk(parent); err != nil {
					t.Fatal(err)
				}
			}
		})
		if ix.Bucket(ix.Buckets()-1).Note != 1 {
			t.Fatalf("bucket %d has no note", ix.Buckets()-1)
		}
	}
	for range 30 {
		step("Merge", func() {
			if dropped := ix.Merge(); len(dropped) > 0 {
				t.Fatalf("%d slots are dropped from %d of %d", len(dropped), ix.Len(), ix.Buckets()*Slots)
			}
		})
	}
	for _, name := range []string{"Insert", "Split", "Merge"} {
		if moved[name] == 0 {
			t.Errorf("no %s moves a slot", name)
		}
	}
	ix.Close(parent)
}

// TestReaders: words that stay are found at every moment, while others come and go and buckets too.
func TestReaders(t *testing.T) {
	parent := alloctest.New(t)
	r := rand.New(rand.NewPCG(1, 1))
	var ix Index
	ix.Init(chunkBytes, new(pin.Holders), new(seam.Seam))
	insert := func(w uint64) {
		if !ix.Grow(1) {
			if err := ix.AddChunk(parent); err != nil || !ix.Grow(1) {
				t.Fatal("no room after a chunk: ", err)
			}
		}
		if !ix.Insert(w) {
			t.Fatal("refused")
		}
	}
	stay := make([]uint64, 100)
	for i := range stay {
		stay[i] = r.Uint64() | 1
		insert(stay[i])
	}
	done := make(chan bool)
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for i := 0; ; i++ {
				if w := stay[i%len(stay)]; !ix.contains(w) {
					t.Errorf("%#x is not found", w)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for range 50 {
		var others []uint64
		for range 1000 {
			w := r.Uint64()&^1 | 2
			insert(w)
			others = append(others, w)
		}
		for _, w := range others {
			ix.Remove(ix.Find(tagOf(w), ^uint64(0), w))
		}
		ix.Shrink(math.MaxInt, func(gone []uint64) { t.Errorf("%#x is dropped", gone) })
	}
	close(done)
	readers.Wait()
	ix.Check()
	ix.Close(parent)
}

// TestSearch: a search finds the slots with the tag in both homes, whichever build it is. A tag of
// 0 also finds empty slots.
func TestSearch(t *testing.T) {
	parent := alloctest.New(t)
	r := rand.New(rand.NewPCG(1, 1))
	var ix Index
	ix.Init(chunkBytes, new(pin.Holders), new(seam.Seam))
	check := func(tag uint32) {
		one, two, matches := search(&ix, tag)
		wantOne, wantTwo, want := searchInGo(&ix, tag)
		if one != wantOne || two != wantTwo || matches != want {
			t.Fatalf("tag %#x of %d buckets: homes %d and %d with %#x, want %d and %d with %#x",
				tag, ix.Buckets(), one, two, matches, wantOne, wantTwo, want)
		}
	}
	check(1)
	for range 20_000 {
		for !ix.Grow(1) {
			if err := ix.AddChunk(parent); err != nil {
				t.Fatal(err)
			}
		}
		w := r.Uint64() >> (r.UintN(2) * TagBits) // with a tag of 0 too
		ix.Bucket(r.Uint32N(ix.Buckets())).Note = r.Uint64()
		check(tagOf(w))
		check(uint32(r.Uint64N(1 << TagBits)))
		if w == 0 || !ix.Insert(w) {
			continue
		}
		check(tagOf(w))
		for found := ix.Search(tagOf(w)); ; {
			if at := ix.Next(&found); at == nil {
				t.Fatalf("%#x is not found", w)
			} else if at.Load() == w {
				break
			}
		}
	}
	ix.Close(parent)
}
