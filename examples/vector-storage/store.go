// Store: vectors in one off-heap block, and their documents.
//
//	vectors  | v0[0] ... v0[dim-1] | v1[0] ... v1[dim-1] | v2[0] ...
//	docs     | id, title           | id, title           | ...
//
// The collector sees two slices for any number of vectors.

package main

import (
	"fmt"

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
func NewStore(memory freehold.Allocator, dim int) (*Store, error) {
	if dim <= 0 {
		return nil, fmt.Errorf("vectors of %d numbers", dim)
	}
	return &Store{memory: memory, dim: dim}, nil
}

// Add stores a copy of a vector, scaled to length 1. On an error the store is
// unchanged. The error matches freehold.ErrOutOfMemory if there is no memory;
// otherwise it says what is wrong with the vector.
func (s *Store) Add(id uint64, title string, vector []float32) error {
	scale, err := scaleOf(vector, s.dim)
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

	multiply(added, added, scale)
	s.vectors = s.vectors[:(n+1)*s.dim]
	s.docs = s.docs[:n+1]
	s.docs[n].title = freehold.StringOf(title)
	return nil
}

// Len returns the number of vectors.
func (s *Store) Len() int { return len(s.docs) }

// vector returns the vector at index i.
func (s *Store) vector(i int) []float32 { return s.vectors[i*s.dim : (i+1)*s.dim] }

// A Hit is a vector that a search found.
type Hit struct {
	Index int     // in the order of Add
	Score float32 // the cosine of its angle with the query, at most about 1
	ID    uint64
	Title string // off-heap: valid until the store is freed
}

// Search returns the k vectors with the direction closest to the query's, best
// first, or all if there are fewer than k. It compares every vector, on all
// processors.
func (s *Store) Search(query []float32, k int) ([]Hit, error) {
	scale, err := scaleOf(query, s.dim)
	if err != nil {
		return nil, err
	}
	if k <= 0 {
		return nil, fmt.Errorf("a search for the best %d", k)
	}
	unit := make([]float32, s.dim)
	multiply(unit, query, scale)
	hits := topK(s.Len(), k, unit, s.vector)
	for i := range hits {
		d := s.docs[hits[i].Index]
		hits[i].ID, hits[i].Title = d.id, d.title.Get()
	}
	return hits, nil
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
