// The same store on the Go heap, for comparison, as one writes it without freehold:
// each document, title and vector is a separate object.

package main

import "slices"

type goStore struct {
	dim  int
	docs []*goDoc
}

type goDoc struct {
	id     uint64
	title  string
	vector []float32
}

// Add is Store.Add.
func (s *goStore) Add(id uint64, title string, vector []float32) error {
	scale, err := scaleOf(vector, s.dim)
	if err != nil {
		return err
	}
	unit := slices.Clone(vector)
	multiply(unit, vector, scale)
	s.docs = append(s.docs, &goDoc{id, title, unit})
	return nil
}

// Search is Store.Search.
func (s *goStore) Search(query []float32, k int) ([]Hit, error) {
	scale, err := scaleOf(query, s.dim)
	if err != nil {
		return nil, err
	}
	unit := make([]float32, s.dim)
	multiply(unit, query, scale)
	hits := topK(len(s.docs), k, unit, func(i int) []float32 { return s.docs[i].vector })
	for i := range hits {
		d := s.docs[hits[i].Index]
		hits[i].ID, hits[i].Title = d.id, d.title
	}
	return hits, nil
}
