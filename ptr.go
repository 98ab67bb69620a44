// References that may be stored off-heap: Ptr, Slice and String.
//
// Each is an address and no Go pointer, so the type check lets it pass, the
// collector ignores it and storing one needs no write barrier. In a structure
// that lies off-heap they take the place of *T, []T and string:
//
//	type Node struct {
//		key  freehold.String
//		next freehold.Ptr[Node]
//	}
//
// They do not own what they refer to and do not know whether it was freed.

package freehold

import "unsafe"

// Ptr refers to a T off-heap and may itself be stored off-heap. It is one word;
// the zero value is nil. Two of them are equal if they refer to the same T.
//
// A Ptr keeps nothing alive. It must not be made from a pointer into the Go heap
// or a stack: once the collector frees or moves that, Get returns a pointer to
// something else, and the process may die of it.
type Ptr[T any] struct {
	_    [0]*T // so that Ptr[A] does not convert to Ptr[B]
	addr uintptr
}

// PtrTo returns a reference to *p, which [New] returned or which lies in a block,
// such as an element of a slice from [MakeSlice]. It is valid for as long as p
// is. PtrTo(nil) is the zero Ptr.
func PtrTo[T any](p *T) Ptr[T] { return Ptr[T]{addr: uintptr(unsafe.Pointer(p))} }

// Get returns the pointer that the Ptr was made from; nil for the zero Ptr. It
// costs one load, and checks nothing: after Free of the T, using the result is
// using freed memory.
func (p Ptr[T]) Get() *T { return (*T)(pointer(p.addr)) }

// IsNil reports whether p is the zero Ptr.
func (p Ptr[T]) IsNil() bool { return p.addr == 0 }

// Slice refers to a []T off-heap and may itself be stored off-heap. It is three
// words: address, length and capacity, so that what Get returns can be passed to
// [Append] and [FreeSlice]. The zero value is the nil slice. Slices cannot be
// compared, as Go's own. Lifetimes are as for [Ptr].
type Slice[T any] struct {
	_    [0][]T // so that Slice[A] does not convert to Slice[B], and none compare
	addr uintptr
	len  int
	cap  int
}

// SliceOf returns a reference to s, which [MakeSlice], [Append], [Grow] or [Clone]
// returned, or to a part of such a slice. It is valid until s is freed or grown.
// A slice without capacity becomes the zero Slice.
func SliceOf[T any](s []T) Slice[T] {
	if cap(s) == 0 {
		return Slice[T]{}
	}
	return Slice[T]{addr: uintptr(unsafe.Pointer(unsafe.SliceData(s))), len: len(s), cap: cap(s)}
}

// Get returns the slice that the Slice was made from, with its length and
// capacity; nil for the zero Slice. It copies no element and checks nothing.
func (s Slice[T]) Get() []T { return unsafe.Slice((*T)(pointer(s.addr)), s.cap)[:s.len] }

// Len returns the length of the slice in elements.
func (s Slice[T]) Len() int { return s.len }

// String refers to a string off-heap and may itself be stored off-heap. It is
// two words; the zero value is the empty string. Compare what Get returns:
// Strings themselves do not compare, since == would compare addresses. What is
// said of [Ptr] about lifetimes holds.
type String struct {
	_    [0]func() // so that Strings do not compare
	addr uintptr
	len  int
}

// StringOf returns a reference to s: a string that [CloneString] returned, the
// bytes of a block that are not written to any more, or a part of either. It is
// valid until that is freed. Nothing is copied. An empty s becomes the zero
// String.
//
// A string constant or any other Go string is no such string: clone it first.
func StringOf[S string | []byte](s S) String {
	if len(s) == 0 {
		return String{}
	}
	return String{addr: *(*uintptr)(unsafe.Pointer(&s)), len: len(s)} // both begin with their bytes' address
}

// Get returns the string that the String was made from. It copies no byte and
// checks nothing.
func (s String) Get() string { return unsafe.String((*byte)(pointer(s.addr)), s.len) }

// Len returns the length of the string in bytes.
func (s String) Len() int { return s.len }

// pointer turns an off-heap address into a pointer. It is the package's only
// such conversion: off-heap memory does not move and the collector ignores it.
func pointer(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }
