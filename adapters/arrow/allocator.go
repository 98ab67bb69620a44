// Allocator: Arrow's buffers off-heap.

// Package arrow puts the buffers of Apache Arrow on freehold:
//
//	import freeholdarrow "github.com/freehold-go/freehold/adapters/arrow"
//
//	mem := freeholdarrow.New(freehold.Default())
//	b := array.NewInt64Builder(mem) // ipc.WithAllocator(mem), compute.WithAllocator(ctx, mem), …
//
// An [Allocator] goes wherever arrow-go takes a memory.Allocator: builders, ipc, flight, parquet, compute,
// csv, and what is built on them, such as ADBC, iceberg-go and the Snowflake driver. The package itself
// does not import arrow-go, so it works with any version.
//
// Buffers are then out of the collector's sight. They are reused as soon as they are released, and
// large ones grow without a copy, so a program that builds or reads one record batch after another
// peaks at less memory and collects less often. Its benchmark builds and releases record batches of 16 MiB.
//
// # What it takes
//
// Whoever holds an array, a record or a buffer must Release it, as arrow-go documents it. arrow-go's default
// allocator forgives a missing Release, since the collector has the memory; here it leaks. Test with
// [github.com/freehold-go/freehold/alloctest.New] below this allocator: it names each buffer that was not released, with the
// stack that allocated it. It does what memory.CheckedAllocator does, and finds double frees, late writes and writes past the end.
//
// Memory that was released must not be read. Strings that array.String.Value returns, and the slices of
// array.Int64.Int64Values, are views of the buffer: clone what outlives it.
//
// # When not to use it
//
// Do not use it where the releases are not under control: code that was only run with arrow-go's
// default allocator often lacks some. It gains little for small or long-lived tables, whose buffers the collector
// does not scan anyway.
package arrow

import "github.com/freehold-go/freehold"

// align is what Arrow recommends, in bytes: a cache line, or a vector register of AVX-512.
const align = 64

// Allocator implements memory.Allocator of arrow-go. It is safe for concurrent use if the allocator below it
// is. Its buffers begin at multiples of 64 bytes, and are zero, as those of arrow-go's default.
//
// memory.Allocator has no errors. If memory runs out, Allocate and Reallocate panic with the error of the
// allocator below, which matches freehold.ErrOutOfMemory. The caller's buffer is unchanged. Readers of ipc recover
// the panic and return an error with its text.
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

// Reallocate returns b with size bytes, in place or elsewhere. Bytes that it adds are zero. b is no longer
// valid. A nil or empty b makes it Allocate. It panics as Free does.
func (a *Allocator) Reallocate(size int, b []byte) []byte {
	return freehold.Must(freehold.ReallocZeroed(a.next, b[:cap(b)], size, align))
}

// Free frees b, which may have been cut to a shorter length. It panics if the allocator below can tell that b is no
// live buffer of it: one freed before, or memory from elsewhere.
func (a *Allocator) Free(b []byte) { a.next.Free(b[:cap(b)]) }
