// References that may be stored off-heap: Ptr, Slice and String.
//
// Each holds an address and no Go pointer: it passes the type check, the collector
// ignores it, and storing it needs no write barrier. In off-heap structures they
// replace *T, []T and string:
//
//	type Node struct {
//		key  freehold.String
//		next freehold.Ptr[Node]
//	}
//
// They own nothing and do not detect that their target was freed. A reference that is
// itself read from freed memory holds the fill in mode poison, and Get panics.

package freehold

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/watch"
)

// checksReferences tells PtrTo, SliceOf and StringOf to look for Go memory: a mode of
// FREEHOLD_DEBUG is on.
var checksReferences = watch.ChecksReferences()

// mustBeOffHeap panics, in the name of the function fn, if addr is in Go memory.
//
//go:noinline
func mustBeOffHeap(fn string, addr uintptr) {
	if watch.IsGoPointer(addr) && !watch.LendsGoMemory() {
		arg.Panicf(fn, "%#x is in the Go heap or in a goroutine's stack, and the collector will "+
			"free or move it; copy it off-heap first, by New, Clone or CloneString", addr)
	}
}

// poisonedAddr is a word of freed memory in mode poison. On 64 bits it is no address. On 32
// bits it might be one, so it is not checked there.
const poisonedAddr = uintptr(0xDB * (^uintptr(0) / 0xFF) * (^uintptr(0) >> 63))

// Ptr refers to an off-heap T and may itself be stored off-heap. It is one word;
// the zero value is nil. Two are equal if they refer to the same T.
//
// A Ptr keeps nothing alive. Never make one from a pointer into the Go heap or a
// stack: once the collector frees or moves the target, Get returns a bad pointer,
// which may crash the process.
type Ptr[T any] struct {
	_    [0]*T // so that Ptr[A] does not convert to Ptr[B]
	addr uintptr
}

// PtrTo returns a reference to *p, a value from [New] or a part of a block, such as
// an element of a slice from [MakeSlice]. It is valid as long as p is. PtrTo(nil)
// is the zero Ptr. With FREEHOLD_DEBUG=poison, quarantine, guard or leak it panics if p
// points into the Go heap or a stack. It does not panic while an alloctest.Allocator or an
// arena.NewFixed over Go memory is open, since their blocks are Go memory.
func PtrTo[T any](p *T) Ptr[T] {
	if checksReferences {
		mustBeOffHeap("PtrTo", uintptr(unsafe.Pointer(p)))
	}
	return Ptr[T]{addr: uintptr(unsafe.Pointer(p))}
}

// Get returns the pointer that p was made from, or nil for the zero Ptr. It costs one load
// and checks nothing: after the T is freed, the result points to freed memory.
func (p Ptr[T]) Get() *T {
	if poisonedAddr != 0 && p.addr == poisonedAddr {
		panic("freehold: Ptr.Get: use after free: the Ptr is in freed memory, which mode poison has filled with 0xdb")
	}
	return (*T)(pointer(p.addr))
}

// IsNil reports whether p is the zero Ptr.
func (p Ptr[T]) IsNil() bool { return p.addr == 0 }

// Slice refers to an off-heap []T and may itself be stored off-heap. It is three
// words: address, length and capacity. The result of Get can be passed to [Append]
// and [FreeSlice]. The zero value is the nil slice. Slices cannot be compared, like
// Go's own. Lifetimes are as for [Ptr].
type Slice[T any] struct {
	_    [0][]T // so that Slice[A] does not convert to Slice[B], and == does not compile
	addr uintptr
	len  int
	cap  int
}

// SliceOf returns a reference to s, which [MakeSlice], [Append], [Grow] or [Clone]
// returned, or to a part of it. It is valid until s is freed or grown.
// A slice without capacity becomes the zero Slice. It panics for Go memory as [PtrTo] does.
func SliceOf[T any](s []T) Slice[T] {
	if cap(s) == 0 {
		return Slice[T]{}
	}
	if checksReferences {
		mustBeOffHeap("SliceOf", *(*uintptr)(unsafe.Pointer(&s)))
	}
	return *(*Slice[T])(unsafe.Pointer(&s)) // the same words, in the same order
}

// Get returns the slice that s was made from, with its length and capacity, or nil
// for the zero Slice. It copies nothing.
func (s Slice[T]) Get() []T {
	if s.cap < 0 {
		panic("freehold: Slice.Get: use after free: the Slice is in freed memory, which mode poison has filled with 0xdb")
	}
	return unsafe.Slice((*T)(pointer(s.addr)), s.cap)[:s.len]
}

// Len returns the length of the slice in elements.
func (s Slice[T]) Len() int { return s.len }

// String refers to an off-heap string and may itself be stored off-heap. It is two
// words; the zero value is the empty string. Strings cannot be compared, since ==
// would compare addresses: compare the results of Get. Lifetimes are as for [Ptr].
type String struct {
	_    [0]func() // so that == does not compile
	addr uintptr
	len  int
}

// StringOf returns a reference to s: a string that [CloneString] returned, the
// bytes of a block that is no longer written to, or a part of either. It is valid
// until s is freed. It copies nothing. An empty s becomes the zero String.
//
// s must not be a string constant or another Go string: clone it first. StringOf panics for
// Go memory as [PtrTo] does, except for constants, which the collector never frees.
func StringOf[S string | []byte](s S) String {
	if len(s) == 0 {
		return String{}
	}
	if checksReferences {
		mustBeOffHeap("StringOf", *(*uintptr)(unsafe.Pointer(&s)))
	}
	return String{addr: *(*uintptr)(unsafe.Pointer(&s)), len: len(s)} // both begin with their bytes' address
}

// Get returns the string that s was made from. It copies nothing.
func (s String) Get() string {
	if s.len < 0 {
		panic("freehold: String.Get: use after free: the String is in freed memory, which mode poison has filled with 0xdb")
	}
	return unsafe.String((*byte)(pointer(s.addr)), s.len)
}

// Len returns the length of the string in bytes.
func (s String) Len() int { return s.len }

// pointer turns an off-heap address into a pointer. It is the package's only
// such conversion: off-heap memory does not move and the collector ignores it.
func pointer(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }
