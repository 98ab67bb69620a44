// Typed memory: values, slices and strings in the blocks of any Allocator.
//
// Each function counts bytes, takes a block and casts it, or casts back and
// frees. The casts are sound because T holds no Go pointers (pointerfree.go) and
// the block has T's alignment. References to such memory that may themselves
// lie off-heap are in ptr.go.

package freehold

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
)

// New returns a zero T in a block from a. It is the caller's until Free with
// the same a; the collector neither sees nor frees it.
//
// It panics if T holds a Go pointer, naming the field:
//
//	freehold: New[Node]: field key is a string, which points into the Go heap; use freehold.String
//
// The error, if any, is a's, and matches [ErrOutOfMemory]. A T of size 0 takes
// no memory; its pointer is valid, not nil, and may equal others.
//
// It costs a's Zeroed and 1 to 2 ns for the check of T. Nothing is allocated on
// the Go heap.
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

// Free gives back the value that p points to, which [New] returned for the same
// T and the same a. Nothing may use it afterwards: p itself, copies of p and any
// [Ptr] to it. A nil p is accepted and nothing happens.
//
// It panics as a.Free does: where a can tell, if p did not come from a or has
// been freed. Free does not clear the memory.
func Free[T any](a Allocator, p *T) {
	if p == nil {
		return
	}
	a.Free(unsafe.Slice((*byte)(unsafe.Pointer(p)), sizeOf[T]()))
}

// MakeSlice returns a slice of n zero elements in a block from a; len and cap
// are n, and it is not nil even if n is 0. It is the caller's until [FreeSlice]
// with the same a. Grow it with [Append]: the built-in append would copy it to
// the Go heap, and the block would be lost.
//
// It panics if n is negative or, like [New], if T holds a Go pointer. The error
// matches [ErrOutOfMemory]: a's own, or that n elements are more bytes than an
// int can hold.
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

// MakeSliceCap is [MakeSlice] with room to grow: the slice has n elements and the
// given capacity, in elements. All are zero, those beyond n too. It panics if the
// capacity is below n.
func MakeSliceCap[T any](a Allocator, n, capacity int) ([]T, error) {
	if !isKnown[T]() {
		mustBePointerFree[T]("MakeSliceCap")
	}
	arg.AtLeast("MakeSliceCap", "n", n, 0)
	arg.AtLeast("MakeSliceCap", "capacity", capacity, n)
	s, err := MakeSlice[T](a, capacity)
	if err != nil {
		return nil, err
	}
	return s[:n], nil
}

// FreeSlice gives back the block of s, which [MakeSlice], [MakeSliceCap],
// [Append], [Grow] or [Clone] returned for the same a. Nothing may use its
// elements afterwards. A nil or empty slice with no capacity is accepted and
// nothing happens.
//
// The block is s[:cap(s)], whatever the length of s, so a shorter view s[:n] will
// do. One that begins later, s[1:], or has its capacity cut, s[:n:n], is a
// mistake: it names another block. So is a slice that the built-in append, slices.Insert or the like has
// moved to the Go heap: its block is lost. FreeSlice panics as a.Free does,
// where a can tell.
func FreeSlice[T any](a Allocator, s []T) { a.Free(blockOf(s)) }

// Append appends v to s, as the built-in append does, in memory from a: within
// s's capacity if v fits, else in a larger block that takes the place of s's. A
// nil or empty s gets its first block. s must come from [MakeSlice],
// [MakeSliceCap], Append, [Grow] or [Clone] with the same a, whole or with its
// length cut, s[:n], to write over what followed; v may be any slice, s itself
// included.
//
// On success s is no longer valid and the result is the caller's until
// [FreeSlice]. On an error the result is s, unchanged and still the caller's, so
// s, err = Append(a, s, v...) never loses a block. The error matches
// [ErrOutOfMemory]. The elements between the result's len and cap are undefined.
//
// It panics, like [New], if T holds a Go pointer. Where v does not fit, it panics
// as a.Free does if s is not a block of a, such as a slice that the built-in
// append has moved; within the capacity it does not look.
//
// A block grows to at least twice its size, or one and a half times from 64 KiB
// on, so n single appends copy O(n) elements, and fewer where a can resize
// without a copy; while it copies, both blocks are live. If a has a method
// GoodSize(size int) int, as [Heap] does, the block is made that large, so that
// none of it is wasted.
func Append[T any](a Allocator, s []T, v ...T) ([]T, error) {
	n := uint(len(s)) + uint(len(v))
	if n > uint(cap(s)) {
		return grow(a, s, v)
	}
	r := s[:n]
	copy(r[len(s):], v)
	return r, nil
}

// doublingBytes is the block size from which Append grows by half: doubling
// saves copies while blocks are small and wastes memory when they are large.
const doublingBytes = 64 << 10

// grow is Append's slow path: v does not fit s's capacity.
func grow[T any](a Allocator, s, v []T) ([]T, error) {
	if !isKnown[T]() {
		mustBePointerFree[T]("Append")
	}
	old := blockOf(s)

	// v may lie in s's own block, which enlarge is about to replace.
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

// Grow makes room for n more elements: it returns s with the same length and
// elements and a capacity of at least len(s)+n, as slices.Grow does. Appending n
// elements then neither fails nor moves them. If the room is there already the
// result is s itself. Ownership, errors and the size of the block are as for
// [Append].
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

// enlarge returns s in a block with room for n elements, which are more than its
// capacity; s itself with an error.
func enlarge[T any](a Allocator, s []T, n uint) ([]T, error) {
	size, err := sizeOfN[T](n)
	if err != nil {
		return s, err
	}
	old, capacity := blockOf(s), n
	if elem := sizeOf[T](); elem > 0 {
		size = GoodSize(a, max(size, grownBytes(len(old))))
		size -= size % elem
		capacity = uint(size / elem)
	}
	b, err := Realloc(a, old, size, alignOf[T]())
	if err != nil {
		return s, err
	}
	return elements[T](b, int(capacity))[:len(s)], nil
}

// grownBytes returns the size to which Append would like to grow a block of the
// given size, both in bytes; the same where more cannot be counted.
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
// not nil. It is the caller's until [FreeSlice]. s may lie anywhere, on the Go
// heap or off it, and is not kept.
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

// CloneString returns a copy of s, which is text or bytes, in a block from a. It
// is an ordinary string, the caller's until [FreeString] with the same a;
// substrings of it are views that die with it. An empty string takes no memory.
// The error is a's.
func CloneString[S string | []byte](a Allocator, s S) (string, error) {
	b, err := a.Alloc(len(s), 1)
	if err != nil {
		return "", err
	}
	copy(b, s)
	return unsafe.String(unsafe.SliceData(b), len(b)), nil
}

// FreeString gives back a string that [CloneString] returned for the same a,
// whole. Nothing may use it afterwards, which for a string is easily missed: map
// keys, errors and substrings hold on to it. An empty string is accepted and
// nothing happens. It panics as a.Free does.
func FreeString(a Allocator, s string) {
	a.Free(unsafe.Slice(unsafe.StringData(s), len(s)))
}

// Must returns v, and panics with err if it is not nil. It is for tests,
// examples and start-up, where running out of memory is the end anyway:
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

// sizeOfN returns the size in bytes of n elements. It takes n unsigned so that
// the sum of two lengths cannot overflow on the way here.
func sizeOfN[T any](n uint) (int, error) {
	if size := sizeOf[T](); n > math.MaxInt/uint(max(size, 1)) {
		return 0, fmt.Errorf("%w: %d elements of %d bytes are more than an int can hold", ErrOutOfMemory, n, size)
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
