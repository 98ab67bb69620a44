package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// A search returns the same result as sorting all vectors.
func TestSearch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, dim := range []int{1, 3, 4, 17} { // with 1 all scores are 1 or -1
		s := NewStore(alloctest.New(t), dim)
		vector, unit := make([]float32, dim), make([]float32, dim)
		for n := range 100 {
			fill(vector, random)
			scale, _ := s.scaleOf(vector)
			multiply(unit, vector, scale)
			var want []Hit
			for i, d := range s.docs {
				want = append(want, Hit{d.id, d.title.Get(), dot(unit, s.vectors[i*dim:(i+1)*dim])})
			}
			slices.SortStableFunc(want, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
			for _, k := range []int{1, 2, 10, n + 1, n + 100, math.MaxInt} {
				if got, err := s.Search(vector, k); err != nil || !slices.Equal(got, want[:min(k, n)]) {
					t.Fatalf("the best %d of %d: %v, want %v; error %v", k, n, got, want[:min(k, n)], err)
				}
			}
			fill(vector, random)
			if err := s.Add(uint64(1000-n), strings.Repeat("t", n), vector); err != nil {
				t.Fatal(err)
			}
		}
		s.Free()
		if s.Len() != 0 {
			t.Errorf("%d vectors after Free", s.Len())
		}
	}
}

// The score is the cosine, whatever the vectors' lengths.
func TestScore(t *testing.T) {
	s := NewStore(alloctest.New(t), 2)
	defer s.Free()
	for i, v := range [][]float32{{3, 4}, {-1e30, 0}, {0, 1e-30}, {math.MaxFloat32, math.MaxFloat32}} {
		if err := s.Add(uint64(i), "", v); err != nil {
			t.Fatal(err)
		}
	}
	for _, length := range []float32{1e-38, 1, 3e38} {
		hits, err := s.Search([]float32{0, length}, 4)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []struct {
			id     uint64
			cosine float64
		}{{2, 1}, {0, 0.8}, {3, math.Sqrt2 / 2}, {1, 0}} {
			if h := hits[i]; h.ID != want.id || math.Abs(float64(h.Score)-want.cosine) > 1e-6 {
				t.Errorf("query of length %g: hit %d is %v, want %v", length, i, h, want)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	s := NewStore(alloctest.New(t), 2)
	defer s.Free()
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, test := range []struct {
		vector []float32
		want   string
	}{
		{nil, "the vector has 0 numbers, want 2"},
		{[]float32{1, 2, 3}, "the vector has 3 numbers, want 2"},
		{[]float32{0, 0}, "the vector has no direction: its length is 0"},
		{[]float32{1, nan}, "the vector has no direction: its length is NaN"},
		{[]float32{inf, 1}, "the vector has no direction: its length is +Inf"},
	} {
		if err := s.Add(1, "x", test.vector); fmt.Sprint(err) != test.want || s.Len() != 0 {
			t.Errorf("Add of %v: error %v, want %q; %d vectors", test.vector, err, test.want, s.Len())
		}
		if _, err := s.Search(test.vector, 1); fmt.Sprint(err) != test.want {
			t.Errorf("Search for %v: error %v, want %q", test.vector, err, test.want)
		}
	}
	if _, err := s.Search([]float32{1, 2}, 0); err == nil {
		t.Error("no error for k = 0")
	}
}

// Whichever allocation fails, the store stays unchanged, and the next Add works.
func TestOutOfMemory(t *testing.T) {
	failed := 0 // failed calls of Add; a call that must grow may succeed with less memory
	for n := range 100 {
		s := NewStore(alloctest.FailOnce(alloctest.New(t), n), 3)
		for i := 0; i < 50; i++ {
			if err := s.Add(uint64(i), "title", []float32{1, float32(i), 2}); err != nil {
				if !errors.Is(err, freehold.ErrOutOfMemory) {
					t.Fatal(err)
				}
				failed++
				i--
			}
		}
		for i := range 50 {
			hits, err := s.Search([]float32{1, float32(i), 2}, 50)
			if err != nil || len(hits) != 50 {
				t.Fatalf("%d hits, error %v", len(hits), err)
			}
			if h := hits[0]; h.ID != uint64(i) || h.Title != "title" || h.Score < 0.999999 {
				t.Fatalf("after failure %d: vector %d finds %v", n, i, h)
			}
		}
		s.Free()
	}
	if failed < 50 {
		t.Errorf("of the allocations for 50 vectors %d failed", failed)
	}
}

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(&out, 1000); err != nil || !strings.Contains(out.String(), "  1.000  document 999\n") || !strings.Contains(out.String(), "holds 0 blocks") {
		t.Errorf("error %v, printed\n%s", err, out.String())
	}
}

// A collection with the store, and with an object for each document on the Go heap.
func BenchmarkCollection(b *testing.B) {
	const n, dim = 100_000, 384
	collect := func(b *testing.B) {
		for b.Loop() {
			runtime.GC()
		}
	}
	vector := make([]float32, dim)
	fill(vector, rand.New(rand.NewPCG(1, 2)))
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	s := NewStore(heap, dim)
	for i := range n {
		if err := s.Add(uint64(i), "title", vector); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("memory=off-heap", collect)
	s.Free()

	type document struct {
		id     uint64
		title  string
		vector []float32
	}
	var onGo []*document
	for i := range n {
		onGo = append(onGo, &document{uint64(i), "title", slices.Clone(vector)})
	}
	b.Run("memory=go", collect)
	runtime.KeepAlive(onGo)
}
