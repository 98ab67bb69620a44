package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

func randomVector(rnd *rand.Rand, dim int) []float32 {
	v := make([]float32, dim)
	for i := range v {
		v[i] = rnd.Float32() - 0.5
	}
	return v
}

// naive sorts all vectors by their dot product with the query.
func naive(s *Store, query []float32) []Hit {
	var all []Hit
	scale, _ := scaleOf(query, s.dim)
	unit := make([]float32, s.dim)
	multiply(unit, query, scale)
	for i, d := range s.docs {
		all = append(all, Hit{i, dot(unit, s.vector(i)), d.id, d.title.Get()})
	}
	slices.SortStableFunc(all, func(a, b Hit) int {
		switch {
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		}
		return 0
	})
	return all
}

func TestSearch(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, dim := range []int{1, 3, 4, 17} { // with 1 all scores are 1 or -1
		s, err := NewStore(alloctest.New(t), dim)
		if err != nil {
			t.Fatal(err)
		}
		g := &goStore{dim: dim}
		for n := range 100 {
			query := randomVector(rnd, dim)
			want := naive(s, query)
			for _, k := range []int{1, 2, 10, n + 1, n + 100, math.MaxInt} {
				got, err := s.Search(query, k)
				if err != nil {
					t.Fatal(err)
				}
				if want := want[:min(k, n)]; !slices.Equal(got, want) {
					t.Fatalf("the best %d of %d: %v, want %v", k, n, got, want)
				}
				if onGo, err := g.Search(query, k); err != nil || !slices.Equal(got, onGo) {
					t.Fatalf("the best %d of %d on the Go heap: %v, want %v; error %v", k, n, onGo, got, err)
				}
			}
			v := randomVector(rnd, dim)
			title := strings.Repeat("t", n)
			if err := errors.Join(s.Add(uint64(1000-n), title, v), g.Add(uint64(1000-n), title, v)); err != nil {
				t.Fatal(err)
			}
		}
		s.Free()
		if s.Len() != 0 {
			t.Errorf("%d vectors after Free", s.Len())
		}
	}
}

// The score is the cosine for vectors of any length.
func TestScore(t *testing.T) {
	s, _ := NewStore(alloctest.New(t), 2)
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
	for _, dim := range []int{0, -1} {
		if _, err := NewStore(freehold.Default(), dim); err == nil {
			t.Errorf("no error for vectors of %d numbers", dim)
		}
	}
	s, _ := NewStore(alloctest.New(t), 2)
	defer s.Free()
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, test := range []struct {
		vector []float32
		want   string
	}{
		{nil, "a vector of 0 numbers, not 2"},
		{[]float32{1}, "a vector of 1 numbers, not 2"},
		{[]float32{1, 2, 3}, "a vector of 3 numbers, not 2"},
		{[]float32{0, 0}, "a vector of length 0 has no direction"},
		{[]float32{1, nan}, "a vector of length NaN has no direction"},
		{[]float32{inf, 1}, "a vector of length +Inf has no direction"},
	} {
		if err := s.Add(1, "x", test.vector); fmt.Sprint(err) != test.want {
			t.Errorf("Add of %v: error %v, want %q", test.vector, err, test.want)
		}
		if _, err := s.Search(test.vector, 1); fmt.Sprint(err) != test.want {
			t.Errorf("Search for %v: error %v, want %q", test.vector, err, test.want)
		}
	}
	for _, k := range []int{0, -1} {
		if _, err := s.Search([]float32{1, 2}, k); err == nil {
			t.Errorf("no error for the best %d", k)
		}
	}
	if s.Len() != 0 {
		t.Errorf("%d vectors after errors", s.Len())
	}
}

// Whichever allocation fails, the store is unchanged, and the next Add works.
func TestOutOfMemory(t *testing.T) {
	failed := 0 // times an Add failed: one that has to grow may do with less
	for n := range 100 {
		s, _ := NewStore(alloctest.FailOnce(alloctest.New(t), n), 3)
		failures := 0
		for i := 0; i < 50; i++ {
			if err := s.Add(uint64(i), "title", []float32{1, float32(i), 2}); err != nil {
				if !errors.Is(err, freehold.ErrOutOfMemory) {
					t.Fatal(err)
				}
				failures++
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
		failed += failures
	}
	if failed < 50 {
		t.Errorf("of the allocations for 50 vectors %d failed", failed)
	}
}

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(&out, options{n: 1000, dim: 16, k: 5, queries: 3}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "holds 0 blocks") {
		t.Errorf("printed\n%s", out.String())
	}
}

func BenchmarkSearch(b *testing.B) {
	const n, dim, k = 20_000, 384, 10
	rnd := rand.New(rand.NewPCG(1, 2))
	g := &goStore{dim: dim}
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	s, _ := NewStore(heap, dim)
	for i := range n {
		v := randomVector(rnd, dim)
		if err := errors.Join(g.Add(uint64(i), "title", v), s.Add(uint64(i), "title", v)); err != nil {
			b.Fatal(err)
		}
	}
	query := randomVector(rnd, dim)
	for _, row := range []struct {
		memory string
		search func([]float32, int) ([]Hit, error)
	}{{"go", g.Search}, {"off-heap", s.Search}} {
		b.Run("memory="+row.memory, func(b *testing.B) {
			b.SetBytes(n * dim * 4)
			for b.Loop() {
				if _, err := row.search(query, k); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Add, with Free at the end.
func BenchmarkAdd(b *testing.B) {
	const n, dim = 20_000, 384
	vector := randomVector(rand.New(rand.NewPCG(1, 2)), dim)
	b.Run("memory=go", func(b *testing.B) {
		for b.Loop() {
			s := &goStore{dim: dim}
			for i := range n {
				_ = s.Add(uint64(i), "title", vector)
			}
		}
	})
	b.Run("memory=off-heap", func(b *testing.B) {
		heap := freehold.NewHeap(nil)
		defer heap.Close()
		for b.Loop() {
			s, _ := NewStore(heap, dim)
			for i := range n {
				_ = s.Add(uint64(i), "title", vector)
			}
			s.Free()
		}
	})
}
