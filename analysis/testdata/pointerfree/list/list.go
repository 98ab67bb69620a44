// Package list is a container of off-heap values.
package list

import "github.com/freehold-go/freehold"

type node[T any] struct {
	value T
	next  freehold.Ptr[node[T]]
}

// A List holds values of T off-heap.
type List[T any] struct {
	a    freehold.Allocator
	head *node[T]
	Refs int
}

func New[T any](a freehold.Allocator) *List[T] { return &List[T]{a: a} }

func (l *List[T]) Push(v T) error { // want Push:`stores \[0\]`
	n, err := freehold.New[node[T]](l.a)
	if err != nil {
		return err
	}
	n.value, n.next = v, freehold.PtrTo(l.head)
	l.head = n
	return nil
}

// Refer stores a reference to a T, and no T.
func Refer[T any](a freehold.Allocator, t *T) (*freehold.Ptr[T], error) {
	return freehold.New[freehold.Ptr[T]](a)
}

func Pair[K, V any](a freehold.Allocator, k K, v *V) error { // want Pair:`stores \[0\]`
	return single(a, k)
}

func single[T any](a freehold.Allocator, t T) error { // want single:`stores \[0\]`
	s, err := freehold.Clone(a, []T{t})
	freehold.FreeSlice(a, s)
	return err
}
