// Store: vectors in one off-heap block, and their documents.
//
//	vectors  | v0[0] ... v0[dim-1] | v1[0] ... v1[dim-1] | v2[0] ...
//	docs     | id, title           | id, title           | ...
//
// The collector sees two slices for any number of vectors.

package main

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sort"
	"sync"

	"github.com/freehold-go/freehold"
)

// Store keeps vectors of one length, normalised, each with an id and a title.
// Searches may run concurrently, but not with an Add.
type Store struct {
	memory  freehold.Allocator
	dim     int
	vectors []float32 // len(vectors) == dim * len(docs)
	docs    []doc
}

type doc struct {
	id    uint64
	title freehold.String
}

// NewStore returns an empty store of vectors of dim numbers. It allocates from
// memory. Free returns all of it.
func NewStore(memory freehold.Allocator, dim int) *Store { return &Store{memory: memory, dim: dim} }

// Add stores a copy of a vector, scaled to length 1. On an error the store is
// unchanged. The error matches freehold.ErrOutOfMemory if there is no memory;
// otherwise it describes the fault of the vector.
func (s *Store) Add(id uint64, title string, vector []float32) error {
	scale, err := s.scaleOf(vector)
	if err != nil {
		return err
	}
	// Both slices grow first, so that nothing can fail halfway.
	n := len(s.docs)
	if s.vectors, err = freehold.Append(s.memory, s.vectors, vector...); err != nil {
		return err
	}
	added := s.vectors[n*s.dim:]
	s.vectors = s.vectors[:n*s.dim]
	if s.docs, err = freehold.Append(s.memory, s.docs, doc{id: id}); err != nil {
		return err
	}
	s.docs = s.docs[:n]
	title, err = freehold.CloneString(s.memory, title)
	if err != nil {
		return err
	}

	multiply(added, vector, scale)
	s.vectors = s.vectors[:(n+1)*s.dim]
	s.docs = s.docs[:n+1]
	s.docs[n].title = freehold.StringOf(title)
	return nil
}

// Len returns the number of vectors.
func (s *Store) Len() int { return len(s.docs) }

// A Hit is a vector that a search found.
type Hit struct {
	ID    uint64
	Title string  // off-heap: valid until the store is freed
	Score float32 // the cosine of its angle with the query, at most about 1
}

// Search returns the k vectors with the direction closest to the query's, best first, or all if
// there are fewer than k. Of equal scores it prefers the earlier vector. It compares every
// vector, on all processors.
func (s *Store) Search(query []float32, k int) ([]Hit, error) {
	scale, err := s.scaleOf(query)
	if err != nil {
		return nil, err
	}
	if k < 1 {
		return nil, fmt.Errorf("k is %d, want at least 1", k)
	}
	unit := make([]float32, s.dim)
	multiply(unit, query, scale)
	workers := runtime.GOMAXPROCS(0)
	best := make([][]Hit, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() { best[w] = s.search(unit, k, s.Len()*w/workers, s.Len()*(w+1)/workers) })
	}
	wg.Wait()
	all := slices.Concat(best...)
	slices.SortStableFunc(all, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
	return all[:min(k, len(all))], nil
}

// search returns the best k of the vectors with index from up to to, to excluded.
func (s *Store) search(unit []float32, k, from, to int) (best []Hit) {
	for i := from; i < to; i++ {
		vector := s.vectors[i*s.dim : (i+1)*s.dim]
		score := dot(unit, vector)
		at := sort.Search(len(best), func(j int) bool { return best[j].Score < score })
		if at < k {
			hit := Hit{s.docs[i].id, s.docs[i].title.Get(), score}
			best = slices.Insert(best[:min(len(best), k-1)], at, hit)
		}
	}
	return best
}

// dot returns the dot product of two vectors of the same length. Four sums instead of one let
// the processor add while it multiplies.
func dot(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float32
	for len(a) >= 4 && len(b) >= 4 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		a, b = a[4:], b[4:]
	}
	for i := range a {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3
}

// scaleOf returns the factor that scales a vector to length 1, or an error if it is
// invalid.
func (s *Store) scaleOf(vector []float32) (float64, error) {
	if len(vector) != s.dim {
		return 0, fmt.Errorf("the vector has %d numbers, want %d", len(vector), s.dim)
	}
	sum := 0.0
	for _, x := range vector {
		sum += float64(x) * float64(x)
	}
	length := math.Sqrt(sum)
	if length == 0 || math.IsNaN(length) || math.IsInf(length, 0) {
		return 0, fmt.Errorf("the vector has no direction: its length is %g", length)
	}
	return 1 / length, nil
}

// multiply sets dst to a vector times a number.
func multiply(dst, vector []float32, by float64) {
	for i, x := range vector {
		dst[i] = float32(float64(x) * by)
	}
}

// Free frees all memory. The store is then empty.
func (s *Store) Free() {
	for _, d := range s.docs {
		freehold.FreeString(s.memory, d.title.Get())
	}
	freehold.FreeSlice(s.memory, s.docs)
	freehold.FreeSlice(s.memory, s.vectors)
	s.docs, s.vectors = nil, nil
}
