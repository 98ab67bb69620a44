// Typed memory: values, slices and strings in blocks of any Allocator.
//
// Each function allocates a block and casts it to T, or casts it back and frees it. The casts are
// sound because T holds no Go pointers (pointerfree.go) and the block has T's alignment. References
// for storage off-heap are in ptr.go.

package freehold

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
)

// New returns a zero T in a block from a. The caller owns it until [Free] with the
// same a; the collector neither scans nor frees it.
//
// It panics if T holds a Go pointer, naming the field:
//
//	freehold: New[Node]: field key is a string, which points into the Go heap; use freehold.String
//
// The error is a's and matches [ErrOutOfMemory]. A T of size 0 takes no memory; its pointer is
// valid, not nil, and may equal others.
//
// It costs a's Zeroed and a table lookup to check T (BenchmarkNew), and allocates nothing on the Go
// heap.
func New[T any](a Allocator) (*T, error) {
	if !isKnown[T]() {
		mustBePointerFree[T]("New")
	}
	b, err := a.Zeroed(sizeOf[T](), alignOf[T]())
	if err != nil {
		return nil, err
	}
	return (*T)(unsafe.Pointer(unsafe.SliceData(b))), nil
}

// Free frees the value at p, which [New] returned for the same T and the same a.
// Do not use p, copies of p or a [Ptr] to it afterwards. A nil p is a no-op.
//
// It panics as a.Free does: if a can tell that p did not come from a or was freed before. Free does
// not clear the memory.
func Free[T any](a Allocator, p *T) {
	if p == nil {
		return
	}
	a.Free(unsafe.Slice((*byte)(unsafe.Pointer(p)), sizeOf[T]()))
}

// MakeSlice returns a slice of n zero elements in a block from a; len and cap
// are n, and it is not nil even if n is 0. The caller owns it until [FreeSlice]
// with the same a. Grow it with [Append]: the built-in append would copy it to
// the Go heap and leak the block. To make room that Append fills, cut the slice: s[:0].
//
// It panics if n is negative or, like [New], if T holds a Go pointer. The error
// matches [ErrOutOfMemory]: it is a's, or the size in bytes overflows an int.
func MakeSlice[T any](a Allocator, n int) ([]T, error) {
	if !isKnown[T]() {
		mustBePointerFree[T]("MakeSlice")
	}
	arg.AtLeast("MakeSlice", "n", n, 0)
	size, err := sizeOfN[T](uint(n))
	if err != nil {
		return nil, err
	}
	b, err := a.Zeroed(size, alignOf[T]())
	if err != nil {
		return nil, err
	}
	return elements[T](b, n), nil
}

// FreeSlice frees the block of s, which [MakeSlice], [Append], [Grow] or [Clone] returned for the
// same a. Do not use its elements afterwards. A nil slice or one without capacity is a no-op.
//
// The block is s[:cap(s)], whatever the length of s, so a shorter slice s[:n] works. A slice that
// begins later, s[1:], or has a smaller capacity, s[:n:n], is not the block: freeing it is a
// mistake. So is freeing a slice that the built-in append or slices.Insert has moved to the Go
// heap: its block has leaked. FreeSlice panics for these mistakes if a.Free can tell.
func FreeSlice[T any](a Allocator, s []T) { a.Free(blockOf(s)) }

// Append appends v to s like the built-in append, in memory from a. If v does not fit the capacity
// of s, a larger block replaces the block of s. A nil or empty s gets its first block. s must come
// from [MakeSlice], Append, [Grow] or [Clone] with the same a. It may be cut to a shorter length,
// s[:n], to overwrite the rest. v may be any slice, including s itself.
//
// On success s is no longer valid, and the caller owns the result until
// [FreeSlice]. On an error Append returns s, unchanged and still the caller's, so
// s, err = Append(a, s, v...) never leaks a block. The error matches
// [ErrOutOfMemory]. The elements between the result's len and cap are undefined.
//
// If v does not fit, Append panics, like [New], if T holds a Go pointer, and as
// a.Free does if s is not a block of a, such as a slice that the built-in append has
// moved. If v fits, Append checks nothing.
//
// A block grows to at least twice its size, or one and a half times from 64 KiB on. So n single
// appends copy O(n) elements, and fewer if a can resize without a copy. If a refuses that size, the
// block grows by less, but enough for v. During a copy both blocks are live. If a has a method
// GoodSize(size int) int, as [Heap] does, Append rounds the block up to it, so that none of it is
// wasted.
func Append[T any](a Allocator, s []T, v ...T) ([]T, error) {
	n := uint(len(s)) + uint(len(v))
	if n > uint(cap(s)) {
		return grow(a, s, v)
	}
	r := s[:n]
	copy(r[len(s):], v)
	return r, nil
}

// doublingBytes is the block size from which Append grows by half. Doubling saves copies of small
// blocks, but wastes memory with large ones.
const doublingBytes = 64 << 10

// grow is Append's slow path: v does not fit s's capacity.
func grow[T any](a Allocator, s, v []T) ([]T, error) {
	if !isKnown[T]() {
		mustBePointerFree[T]("Append")
	}
	old := blockOf(s)

	// v may be in the block of s, which enlarge is about to replace.
	at := uintptr(unsafe.Pointer(unsafe.SliceData(v))) - uintptr(unsafe.Pointer(unsafe.SliceData(s)))
	aliased := at < uintptr(len(old))

	n := uint(len(s)) + uint(len(v))
	r, err := enlarge(a, s, n)
	if err != nil {
		return s, err
	}
	if aliased {
		v = elements[T](blockOf(r)[at:], len(v))
	}
	copy(r[len(s):n], v)
	return r[:n], nil
}

// Grow makes room for n more elements, like slices.Grow: it returns s with the
// same length and elements and a capacity of at least len(s)+n. Appending n
// elements then neither fails nor moves them. If s has the room already, Grow
// returns s. Ownership, errors and the size of the block are as for [Append].
//
// It panics if n is negative or, like [New], if T holds a Go pointer.
func Grow[T any](a Allocator, s []T, n int) ([]T, error) {
	if !isKnown[T]() {
		mustBePointerFree[T]("Grow")
	}
	arg.AtLeast("Grow", "n", n, 0)
	if n <= cap(s)-len(s) {
		return s, nil
	}
	return enlarge(a, s, uint(len(s))+uint(n))
}

// enlarge returns s in a block with room for n elements, n > cap(s). On an error it
// returns s.
func enlarge[T any](a Allocator, s []T, n uint) ([]T, error) {
	size, err := sizeOfN[T](n)
	if err != nil {
		return s, err
	}
	elem, roomy := sizeOf[T](), size
	old := blockOf(s)
	if elem > 0 {
		roomy = GoodSize(a, max(size, grownBytes(len(old))))
		roomy -= roomy % elem
	}
	b, err := Realloc(a, old, roomy, alignOf[T]())
	for err != nil && roomy > size {
		// Try a part of the growth, so that not each of the next appends copies.
		spare := (roomy - size) / 4
		roomy = size + spare - spare%elem
		b, err = Realloc(a, old, roomy, alignOf[T]())
	}
	if err != nil {
		return s, err
	}
	if elem > 0 {
		n = uint(roomy / elem)
	}
	return elements[T](b, int(n))[:len(s)], nil
}

// grownBytes returns the size that Append grows a block of the given size to, both
// in bytes. It returns size if the growth overflows.
func grownBytes(size int) int {
	step := size
	if size >= doublingBytes {
		step = size / 2
	}
	if step > math.MaxInt-size {
		return size
	}
	return size + step
}

// Clone returns a copy of s in a block from a; len and cap are len(s), and it is
// not nil. The caller owns it until [FreeSlice]. s may be on the Go heap or off it;
// Clone does not keep it.
//
// It panics, like [New], if T holds a Go pointer. The error is a's.
func Clone[T any](a Allocator, s []T) ([]T, error) {
	if !isKnown[T]() {
		mustBePointerFree[T]("Clone")
	}
	b, err := a.Alloc(len(s)*sizeOf[T](), alignOf[T]())
	if err != nil {
		return nil, err
	}
	c := elements[T](b, len(s))
	copy(c, s)
	return c, nil
}

// CloneString returns a copy of s in a block from a. It is an ordinary string, which
// the caller owns until [FreeString] with the same a. Its substrings are views of
// the same block. An empty string takes no memory. The error is a's.
func CloneString[S string | []byte](a Allocator, s S) (string, error) {
	b, err := a.Alloc(len(s), 1)
	if err != nil {
		return "", err
	}
	copy(b, s)
	return unsafe.String(unsafe.SliceData(b), len(b)), nil
}

// FreeString frees s, a whole string that [CloneString] returned for the same a. Do
// not use it afterwards; that is easy to miss, since map keys, errors and
// substrings keep strings. An empty string is a no-op. It panics as a.Free does.
func FreeString(a Allocator, s string) {
	a.Free(unsafe.Slice(unsafe.StringData(s), len(s)))
}

// Must returns v, or panics with err if that is not nil. It is for tests, examples
// and start-up, where running out of memory is fatal:
//
//	table := freehold.Must(freehold.MakeSlice[Entry](heap, 1<<20))
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func sizeOf[T any]() int  { return int(unsafe.Sizeof(*new(T))) }
func alignOf[T any]() int { return int(unsafe.Alignof(*new(T))) }

// sizeOfN returns the size in bytes of n elements. n is unsigned so that the sum of
// two lengths cannot overflow.
func sizeOfN[T any](n uint) (int, error) {
	if size := sizeOf[T](); n > math.MaxInt/uint(max(size, 1)) {
		return 0, fmt.Errorf("%w: %d elements of %s are more than an int can hold", ErrOutOfMemory, n, arg.Bytes(size))
	}
	return int(n) * sizeOf[T](), nil
}

// elements returns the first n elements of type T in b as a slice.
//
// Precondition: b has T's alignment and at least n times its size.
func elements[T any](b []byte, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// blockOf returns the block that s[:cap(s)] is a view of.
func blockOf[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), cap(s)*sizeOf[T]())
}
