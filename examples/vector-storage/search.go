// Search: the best k of n vectors, by brute force.
//
//	worker 0   | 0 ... n/2-1 |   best k --+
//	worker 1   | n/2 ... n-1 |   best k --+--> sort --> best k
//
// A worker keeps its best k in a heap with the worst on top. A better vector
// replaces the worst.

package main

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
)

// topK returns the k vectors with the largest dot product with the query, best
// first. Of equal vectors it prefers the first.
func topK(n, k int, query []float32, vector func(i int) []float32) []Hit {
	workers := runtime.GOMAXPROCS(0)
	best := make([]hits, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			from, to := int(int64(n)*int64(w)/int64(workers)), int(int64(n)*int64(w+1)/int64(workers))
			mine := make(hits, 0, min(k, to-from))
			for i := from; i < to; i++ {
				mine = mine.offer(Hit{Index: i, Score: dot(query, vector(i))})
			}
			best[w] = mine
		})
	}
	wg.Wait()
	all := slices.Concat(best...)
	slices.SortFunc(all, compareHits)
	return all[:min(k, len(all))]
}

// compareHits orders the better one first.
func compareHits(a, b Hit) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Index, b.Index))
}

// hits is a heap of the best cap(hits) hits. Once it is full, the worst is at index
// 0.
type hits []Hit

// offer returns the best of h and hit.
func (h hits) offer(hit Hit) hits {
	switch {
	case len(h) < cap(h):
		h = append(h, hit)
		if len(h) == cap(h) {
			heap.Init(h)
		}
	case compareHits(hit, h[0]) < 0:
		h[0] = hit
		heap.Fix(h, 0)
	}
	return h
}

func (h hits) Len() int           { return len(h) }
func (h hits) Less(i, j int) bool { return compareHits(h[i], h[j]) > 0 }
func (h hits) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h hits) Push(any)           { panic("not used: offer keeps the size") }
func (h hits) Pop() any           { panic("not used: offer keeps the size") }

// dot returns the dot product of two vectors of one length. Four sums instead
// of one let the processor add while it multiplies.
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
func scaleOf(vector []float32, dim int) (float64, error) {
	if len(vector) != dim {
		return 0, fmt.Errorf("a vector of %d numbers, not %d", len(vector), dim)
	}
	sum := 0.0
	for _, x := range vector {
		sum += float64(x) * float64(x)
	}
	length := math.Sqrt(sum)
	if length == 0 || math.IsNaN(length) || math.IsInf(length, 0) {
		return 0, fmt.Errorf("a vector of length %g has no direction", length)
	}
	return 1 / length, nil
}

// multiply sets dst to a vector times a number.
func multiply(dst, vector []float32, by float64) {
	for i, x := range vector {
		dst[i] = float32(float64(x) * by)
	}
}
