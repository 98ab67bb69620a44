// Allocator: Arrow's buffers off-heap.

// Package arrow puts the buffers of Apache Arrow on freehold:
//
//	import freeholdarrow "github.com/freehold-go/freehold/adapters/arrow"
//
//	mem := freeholdarrow.New(freehold.Default())
//	b := array.NewInt64Builder(mem) // ipc.WithAllocator(mem), compute.WithAllocator(ctx, mem), …
//
// arrow-go accepts an [Allocator] for each memory.Allocator: builders, ipc, flight, parquet,
// compute, csv, and the libraries on top of them, such as ADBC, iceberg-go and the Snowflake
// driver. The package itself does not import arrow-go, so it works with any version.
//
// The collector does not see the buffers. They are reused as soon as they are released, and large
// ones grow without a copy. So a program that builds or reads one record batch after another peaks
// at less memory and collects less often. The benchmark builds and releases record batches of
// 3.4 MB.
//
// # Requirements
//
// The owner of an array, a record or a buffer must Release it, as arrow-go documents. arrow-go's
// default allocator forgives a missing Release, since the collector frees the memory; here it
// leaks. In tests, put [github.com/freehold-go/freehold/alloctest.New] below this allocator. It
// reports each buffer that was not released, with the stack that allocated it, as
// memory.CheckedAllocator does. It also finds double frees, late writes and writes past the end.
//
// Or give each query an allocator of its own. Its Close frees the buffers that were not released,
// and returns their number. Close it when nothing uses the query's arrays any more:
//
//	query := freehold.NewScope(heap)
//	defer query.Close()
//	mem := freeholdarrow.New(query)
//
// Released memory must not be read. Strings of array.String.Value and slices of
// array.Int64.Int64Values are views of the buffer: clone a value that outlives it.
//
// # When not to use it
//
// Do not use it for code whose releases are unverified: code that only ran with arrow-go's default
// allocator often lacks some. It gains little for small or long-lived tables, since the collector
// does not scan their buffers anyway.
package arrow

import "github.com/freehold-go/freehold"

// align is Arrow's recommendation, in bytes: a cache line, or a vector register of AVX-512.
const align = 64

// Allocator implements memory.Allocator of arrow-go. It is safe for concurrent use if the allocator
// below it is. Its buffers begin at multiples of 64 bytes and are zero, as with arrow-go's default.
//
// memory.Allocator has no errors. If memory runs out, Allocate and Reallocate panic with the error
// of the allocator below, which matches freehold.ErrOutOfMemory. The caller's buffer is unchanged.
// Readers of ipc recover the panic and return an error with its text.
//
// Make one with [New].
type Allocator struct{ next freehold.Allocator }

// New returns an Allocator on next. It needs no Close. It panics if next is nil.
func New(next freehold.Allocator) *Allocator {
	if next == nil {
		panic("freehold: arrow.New: next is nil")
	}
	return &Allocator{next}
}

// Allocate returns a buffer of size bytes, all zero, which the caller owns until Free. It panics
// if size is negative.
func (a *Allocator) Allocate(size int) []byte {
	return freehold.Must(a.next.Zeroed(size, align))
}

// Reallocate returns b with size bytes, in place or elsewhere. Bytes that it adds are zero. b is no
// longer valid. A nil or empty b makes it Allocate. It panics as Free does.
func (a *Allocator) Reallocate(size int, b []byte) []byte {
	return freehold.Must(freehold.ReallocZeroed(a.next, b[:cap(b)], size, align))
}

// Free frees b, which may have been cut to a shorter length. It panics if the allocator below can
// tell that b is not one of its live buffers: it was freed before, or is other memory.
func (a *Allocator) Free(b []byte) { a.next.Free(b[:cap(b)]) }
