// Package retire has the retire list of arenas, pools and maps: unlinked values that wait until no
// reader can use them.
//
//	Add --> open batch --Seal--> | epoch 7 | epoch 8 | epoch 9 | --passed, oldest first--> Pop
package retire

import (
	"iter"

	"github.com/freehold-go/freehold/epoch"
)

// Queue is a retire list. A writer Adds values and Seals the batch, which ends an epoch of a
// [epoch.Domain]. Once that epoch has passed, Pop returns the values. The zero value is an empty
// Queue. A Queue is not safe for concurrent use. It reuses the array of a popped batch for a later
// one.
type Queue[T any] struct {
	open    []T
	batches []batch[T] // oldest first; empty before index first
	first   int
	len     int // of all values
	popped  []T // the array of a batch whose values Pop has returned
	spare   []T // an array for the next open batch
}

// A batch is sealed values. taken of them have been popped.
type batch[T any] struct {
	values []T
	taken  int
	epoch  *epoch.Epoch
}

// maxKept is the most batches for which an empty Queue keeps an array.
const maxKept = 64

// Add adds values to the open batch, and returns how many values the batch has.
func (q *Queue[T]) Add(values ...T) int {
	if q.open == nil {
		q.open, q.spare = q.spare, nil
	}
	q.open = append(q.open, values...)
	q.len += len(values)
	return len(q.open)
}

// Seal closes the open batch and calls [epoch.Domain.Advance]. It reports whether there was one: it
// is a no-op if no value was added since the last Seal.
func (q *Queue[T]) Seal(d *epoch.Domain) bool {
	if len(q.open) == 0 {
		return false
	}
	q.batches = append(q.batches, batch[T]{values: q.open, epoch: d.Advance()})
	q.open = nil
	return true
}

// Passed reports whether Pop would return values: whether the oldest sealed batch's epoch has
// passed. It costs as much as [epoch.Epoch.Passed].
func (q *Queue[T]) Passed() bool {
	return q.first < len(q.batches) && q.batches[q.first].epoch.Passed()
}

// Pop removes up to n values of the oldest sealed batch and returns them. It returns nil if there
// is no such batch or its epoch has not passed. The slice is valid until the next Pop.
func (q *Queue[T]) Pop(n int) []T {
	if q.popped != nil {
		clear(q.popped)
		q.popped, q.spare = nil, q.popped[:0]
	}
	if !q.Passed() {
		return nil
	}
	b := &q.batches[q.first]
	values := b.values[b.taken:]
	values = values[:min(n, len(values))]
	q.len -= len(values)
	if b.taken += len(values); b.taken == len(b.values) {
		q.popped = b.values
		*b = batch[T]{}
		if q.first++; 2*q.first >= len(q.batches) { // keep the array, unless it has become too large
			n := copy(q.batches, q.batches[q.first:])
			clear(q.batches[n:])
			q.batches, q.first = q.batches[:n], 0
			if n == 0 && cap(q.batches) > maxKept {
				q.batches = nil
			}
		}
	}
	return values
}

// Len returns the number of values in the Queue.
func (q *Queue[T]) Len() int { return q.len }

// All yields the values in the Queue, oldest first.
func (q *Queue[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, b := range q.batches[q.first:] {
			for _, v := range b.values[b.taken:] {
				if !yield(v) {
					return
				}
			}
		}
		for _, v := range q.open {
			if !yield(v) {
				return
			}
		}
	}
}
