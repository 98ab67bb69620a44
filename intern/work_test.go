package intern

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/hash"
)

// No Intern does more than copy a segment, or write the directory once.
func TestInternDoesBoundedWork(t *testing.T) {
	n := 1_000_000
	if testing.Short() {
		n = 200_000
	}
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	s := New(heap, nil)
	defer s.Close()
	s.seed = sameSeed()
	const segment = maxSegmentBytes / slotBytes
	var b [8]byte
	sum := 0
	for i := range n {
		binary.LittleEndian.PutUint64(b[:], uint64(i))
		before := s.table.work
		freehold.Must(s.InternBytes(b[:]))
		work := s.table.work - before
		sum += work
		if most := 2*segment + 2*len(s.table.directory); work > most {
			t.Fatalf("string %d: %d slots and entries written, want %d at most", i, work, most)
		}
	}
	if sum > 12*n {
		t.Errorf("%d slots and entries written for %d strings", sum, n)
	}
	if entries := len(s.table.directory); n/entries < 800 {
		t.Errorf("a directory of %d entries for %d strings", entries, n)
	}
}

// The table's part of a string is between 9 and 12 bytes, at any number of strings.
func TestTableBytes(t *testing.T) {
	n := 300_000
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	s := New(heap, nil)
	defer s.Close()
	s.seed = sameSeed()
	var b [8]byte
	for i := range n {
		binary.LittleEndian.PutUint64(b[:], uint64(i))
		freehold.Must(s.InternBytes(b[:]))
		if i < 20_000 || i%5000 > 0 {
			continue
		}
		bytes := 0
		for at := 0; at < len(s.table.directory); {
			e := &s.table.directory[at]
			bytes += headBytes + slotBytes*int(e.head().total)
			at += 1 << (s.table.depth - e.depth)
		}
		if per := float64(bytes) / float64(i+1); per < 9 || per > 12 {
			t.Errorf("%.1f B for each of %d strings", per, i+1)
		}
	}
}

// sameSeed returns the seed of tests that compare with figures that chance changes.
func sameSeed() hash.Seed { return hash.SeedFrom(rand.New(rand.NewPCG(1, 1)).Uint64) }
