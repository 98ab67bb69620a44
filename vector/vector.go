// Vector: a growing array in one block.
//
//	elems | element, element, ... | free      |
//	      0                       len         cap

package vector

import (
	"iter"
	"slices"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/container"
)

// Options sets up [Vector] and [Chunked]; nil means all defaults.
type Options struct {
	// Name appears in Stats and, if the vector is dropped without Close, in the report of
	// package track. It may be empty, and several may have the same name. To account for the
	// memory in profiles too, use a [freehold.Tagged] as the parent.
	Name string
}

// Vector is a growing array in one block. [New] makes one.
//
// A slice from Slice is valid until the next call that may change the capacity: Append,
// AppendSlice, Insert, Grow, Clip or Close. A slice used after that reads and writes freed memory.
type Vector[T any] struct {
	elems []T // all the capacity
	base  container.Base
}

var vectorKind = container.Kind{Type: "vector.Vector", Maker: "vector.New", Is: "the vector is"}

// New returns an empty vector over parent, which must outlive it. It takes no memory before the
// first element; Close frees all. New panics if parent is nil or T has a Go pointer; it then names
// the field.
func New[T any](parent freehold.Allocator, o *Options) *Vector[T] {
	arg.PointerFree(vectorKind.Maker, "", freehold.PointerFree[T]())
	v := &Vector[T]{}
	container.Make(v, &v.base, &vectorKind, parent, nameOf(o))
	return v
}

func nameOf(o *Options) string {
	if o == nil {
		return ""
	}
	return o.Name
}

// Len returns the number of elements.
func (v *Vector[T]) Len() int { return len(v.elems) }

// Cap returns the number of elements that the vector can hold without growing.
func (v *Vector[T]) Cap() int { return cap(v.elems) }

// At returns element i. It panics if i is out of range.
func (v *Vector[T]) At(i int) T {
	if uint(i) >= uint(len(v.elems)) {
		v.outOfRange("At", i)
	}
	return v.elems[i]
}

// Set changes element i. It panics if i is out of range.
func (v *Vector[T]) Set(i int, e T) {
	if uint(i) >= uint(len(v.elems)) {
		v.outOfRange("Set", i)
	}
	v.elems[i] = e
}

// outOfRange is not inlined, so that At and Set are.
//
//go:noinline
func (v *Vector[T]) outOfRange(call string, i int) {
	v.mustBeOpen(call)
	arg.Panicf("vector.Vector."+call, "index %d, and the length is %d", i, len(v.elems))
}

// Slice returns the elements, to read and to write in place. Its capacity is its length, so append
// copies. [Vector] tells until when it is valid. After a function of package slices that drops
// elements, Truncate to the new length.
func (v *Vector[T]) Slice() []T {
	if len(v.elems) == 0 {
		v.mayBeEmpty("Slice")
	}
	return v.elems[:len(v.elems):len(v.elems)]
}

// mayBeEmpty is mustBeOpen. It is not inlined, so that Slice is.
//
//go:noinline
func (v *Vector[T]) mayBeEmpty(call string) { v.mustBeOpen(call) }

// All returns an iterator over indexes and elements. The loop may change, add and drop elements:
// All yields the elements that exist when it reaches them.
func (v *Vector[T]) All() iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		v.mustBeOpen("All")
		for i := 0; i < len(v.elems); i++ {
			if !yield(i, v.elems[i]) {
				return
			}
		}
	}
}

// Append adds e at the end. The error matches [freehold.ErrOutOfMemory]: it is the parent's, or the
// size in bytes overflows an int. The vector is then unchanged.
//
// The block grows as by [freehold.Append]: to twice its size, or one and a half times from 64 KiB
// on, and by less if the parent refuses that. So n calls copy O(n) elements. BenchmarkAppend
// compares it with Go's append.
func (v *Vector[T]) Append(e T) error {
	if n := len(v.elems); n < cap(v.elems) {
		v.elems = v.elems[:n+1]
		v.elems[n] = e
		return nil
	}
	return v.appendSlow(e)
}

//go:noinline
func (v *Vector[T]) appendSlow(e T) error {
	v.mustBeOpen("Append")
	elems, err := freehold.Append(v.base.Parent, v.elems, e)
	v.elems = elems
	return container.Refused(err)
}

// AppendSlice adds the elements of s at the end, all or none. s may be a part of the vector. Errors
// are as for Append.
func (v *Vector[T]) AppendSlice(s []T) error {
	v.mustBeOpen("AppendSlice")
	elems, err := freehold.Append(v.base.Parent, v.elems, s...)
	v.elems = elems
	return container.Refused(err)
}

// Insert puts the elements of s before element i, or at the end if i is Len. s may be a part of the
// vector. Later elements move up. It panics if i is out of range. Errors are as for Append.
func (v *Vector[T]) Insert(i int, s []T) error {
	v.mustBeOpen("Insert")
	arg.Range("vector.Vector.Insert", "index", i, 0, len(v.elems))
	n, k := len(v.elems), len(s)
	if v.overlaps(s) {
		if err := v.AppendSlice(s); err != nil {
			return err
		}
		slices.Reverse(v.elems[i:n]) // three reversals are a rotation
		slices.Reverse(v.elems[n:])
		slices.Reverse(v.elems[i:])
		return nil
	}
	elems, err := freehold.Grow(v.base.Parent, v.elems, k)
	if err != nil {
		return container.Refused(err)
	}
	v.elems = elems[:n+k]
	copy(v.elems[i+k:], v.elems[i:n])
	copy(v.elems[i:], s)
	return nil
}

// overlaps reports whether s begins in the vector's block. Its elements there may be dropped ones.
func (v *Vector[T]) overlaps(s []T) bool {
	if len(s) == 0 {
		return false
	}
	from := uintptr(unsafe.Pointer(unsafe.SliceData(s))) - uintptr(unsafe.Pointer(unsafe.SliceData(v.elems)))
	return from < uintptr(cap(v.elems))*unsafe.Sizeof(*new(T))
}

// Delete drops the elements [i, j). Later elements move down. It panics if i or j is out of range
// or i is greater than j.
func (v *Vector[T]) Delete(i, j int) {
	v.mustBeOpen("Delete")
	arg.Range("vector.Vector.Delete", "end", j, 0, len(v.elems))
	arg.Range("vector.Vector.Delete", "index", i, 0, j)
	copy(v.elems[i:], v.elems[j:])
	v.elems = v.elems[:len(v.elems)-(j-i)]
}

// Pop drops the last element and returns it. It reports false if there is none.
func (v *Vector[T]) Pop() (e T, ok bool) {
	n := len(v.elems) - 1
	if n < 0 {
		v.mustBeOpen("Pop")
		return e, false
	}
	e = v.elems[n]
	v.elems = v.elems[:n]
	return e, true
}

// Truncate drops all but the first n elements. It keeps the capacity. It panics if n is
// negative or more than Len.
func (v *Vector[T]) Truncate(n int) {
	v.mustBeOpen("Truncate")
	arg.Range("vector.Vector.Truncate", "length", n, 0, len(v.elems))
	v.elems = v.elems[:n]
}

// Clear is Truncate(0).
func (v *Vector[T]) Clear() {
	v.mustBeOpen("Clear")
	v.elems = v.elems[:0]
}

// Grow makes room for n more elements, so that Append of them does not fail. It panics if n is
// negative. Errors are as for Append.
func (v *Vector[T]) Grow(n int) error {
	v.mustBeOpen("Grow")
	arg.AtLeast("vector.Vector.Grow", "n", n, 0)
	elems, err := freehold.Grow(v.base.Parent, v.elems, n)
	v.elems = elems
	return container.Refused(err)
}

// Clip frees the capacity beyond the elements, if the parent can shrink the block or has a smaller
// one. Otherwise the capacity stays.
func (v *Vector[T]) Clip() {
	v.mustBeOpen("Clip")
	if len(v.elems) == cap(v.elems) {
		return
	}
	if len(v.elems) == 0 {
		freehold.FreeSlice(v.base.Parent, v.elems)
		v.elems = nil
		return
	}
	block := bytesOf(v.elems[:cap(v.elems)])
	b, err := freehold.Realloc(v.base.Parent, block, len(bytesOf(v.elems)), int(unsafe.Alignof(*new(T))))
	if err == nil {
		v.elems = unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(v.elems))
	}
}

// bytesOf returns the memory of s.
func bytesOf[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), uintptr(len(s))*unsafe.Sizeof(*new(T)))
}

// Close frees the memory. Slices of elements are no longer valid. Later calls panic, except Close,
// Len, Cap and Stats.
func (v *Vector[T]) Close() {
	if v.base.MayClose(&vectorKind, cap(v.elems) > 0) {
		freehold.FreeSlice(v.base.Parent, v.elems)
		v.elems = nil
		container.Closed(v, &v.base)
	}
}

func (v *Vector[T]) mustBeOpen(call string) { v.base.MustBeOpen(&vectorKind, call) }

// Stats returns the figures. It costs a few loads.
func (v *Vector[T]) Stats() Stats {
	return Stats{v.base.Name, v.Len(), v.Cap(), v.Cap() * int(unsafe.Sizeof(*new(T)))}
}
