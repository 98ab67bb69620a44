// Pool: gRPC's message buffers off-heap.

// Package grpc puts the buffers of gRPC's messages on freehold:
//
//	import freeholdgrpc "github.com/freehold-go/freehold/adapters/grpc"
//
//	experimental.SetDefaultBufferPool(freeholdgrpc.New(freehold.Default())) // google.golang.org/grpc/experimental
//
// Call it before the first server or connection is made. experimental.WithBufferPool and experimental.BufferPool set the pool of
// one connection or server, which then receives into it; the codec of protobuf marshals into the default pool in any case.
//
// gRPC's own pool has sizes from 256 B to 1 MiB, a power of two apart or more, in a sync.Pool each: a message of 40 KB takes a MiB, larger
// ones share a sync.Pool, whose buffers may be too short for them, and each second collection empties the pools. A freehold heap gives each message its size, of any
// size, and keeps what it needs.
//
// gRPC does not return every buffer: those of a stream that ends with data unread, as by a client that cancels, are left to the
// collector, and gRPC's tests fail with -tags checkbuffers for that. So a buffer that is dropped is freed here too, after the collection that finds
// the *[]byte of Get unreachable.
//
// # What it takes
//
// A codec or a stats handler must not keep the bytes of a message. The codec of protobuf copies them.
//
// # When not to use it
//
// It gains nothing for messages of up to 1 KiB, which gRPC does not return to a pool, and little where messages are
// rare. Messages of some MB take 1.3 times as long as with the pool of gRPC, at less memory: they are sent in frames of 16 KiB,
// each with a buffer, and so with a cleanup that the runtime must add and remove.
package grpc

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/freehold-go/freehold"
	"google.golang.org/grpc/mem"
)

// Pool implements mem.BufferPool of gRPC. It is safe for concurrent use if its allocator is.
//
// Make one with [New].
type Pool struct {
	next freehold.Owner
	live sync.Map // of buffers that are out, by address: *lease
}

// A lease is a buffer that is out, and the cleanup that frees it if it is dropped. A cleanup that has begun when the buffer is
// returned finds that the address has no lease, or another one.
type lease struct {
	block   []byte
	cleanup runtime.Cleanup
}

// New returns a Pool on next, which must know its own blocks, as all allocators of freehold do. It needs no Close.
// It panics if next is nil.
func New(next freehold.Owner) *Pool {
	if next == nil {
		panic("freehold: grpc.New: next is nil")
	}
	return &Pool{next: next}
}

// Get returns a buffer of length bytes, all zero, which the caller owns until Put, or drops. It is Go memory if gRPC would
// not return it, being that short, or if the allocator is out of memory: a limit bounds what is off-heap, and
// refuses no message.
func (p *Pool) Get(length int) *[]byte {
	if !mem.IsBelowBufferPoolingThreshold(length) {
		if b, err := p.next.Zeroed(length, 1); err == nil {
			buffer := &b
			l := &lease{block: b}
			l.cleanup = runtime.AddCleanup(buffer, p.dropped, l)
			p.live.Store(unsafe.SliceData(b), l)
			return buffer
		}
	}
	b := make([]byte, length)
	return &b
}

// atPut is called by Put before it ends the lease, for tests.
var atPut func()

// Put frees a buffer, or a prefix of it. It panics for one that was freed before, where the allocator can tell. It leaves Go memory
// to the collector.
func (p *Pool) Put(buffer *[]byte) {
	b := (*buffer)[:cap(*buffer)]
	if !p.next.Owns(b) {
		return
	}
	if atPut != nil {
		atPut()
	}
	if l, out := p.live.LoadAndDelete(unsafe.SliceData(b)); out {
		l.(*lease).cleanup.Stop()
	}
	*buffer = nil // after the lease is gone: until here buffer is reachable, so no cleanup frees b
	p.next.Free(b)
}

// dropped frees a buffer that nobody can return any more.
func (p *Pool) dropped(l *lease) {
	if p.live.CompareAndDelete(unsafe.SliceData(l.block), l) {
		p.next.Free(l.block)
	}
}
