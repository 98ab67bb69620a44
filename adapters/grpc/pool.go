// Pool: gRPC's message buffers off-heap.

// Package grpc puts the buffers of gRPC's messages on freehold:
//
//	import freeholdgrpc "github.com/freehold-go/freehold/adapters/grpc"
//
//	experimental.SetDefaultBufferPool(freeholdgrpc.New(freehold.Default()))
//
// Package experimental is google.golang.org/grpc/experimental. Call it before the first server
// or connection is made. experimental.WithBufferPool and experimental.BufferPool set the pool
// that one connection or server receives into. The protobuf codec always marshals into the
// default pool.
//
// gRPC's own pool has a sync.Pool for each of its sizes, from 256 B to 1 MiB, a power of two apart
// or more. A message of 40 KB takes a MiB. Larger messages share a sync.Pool, whose buffers may be
// too short for them. Every second collection empties the pools. A freehold heap gives a message of
// any size its own size, and reuses freed memory.
//
// gRPC does not return every buffer. It leaves the buffers of a stream that ends with unread data,
// for instance when a client cancels, to the collector; for that reason gRPC's tests fail with
// -tags checkbuffers. This pool frees a dropped buffer too, after the collection that finds the
// *[]byte of Get unreachable.
//
// # Requirements
//
// A codec or a stats handler must not keep the bytes of a message. The protobuf codec copies them.
//
// # When not to use it
//
// It gains nothing for messages of up to 1 KiB, which gRPC does not return to a pool, and little
// for rare messages. Messages of a few MB take less memory and about 1.3 times as long as with
// gRPC's pool. They are sent in frames of 16 KiB, each with a buffer and a cleanup that the runtime
// must add and remove.
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
	live sync.Map // *lease of each buffer that is out, by address
}

// A lease is a buffer that is out, and the cleanup that frees it if it is dropped. If a cleanup has
// begun when the buffer is returned, it finds no lease at the address, or another one.
type lease struct {
	block   []byte
	cleanup runtime.Cleanup
}

// New returns a Pool on next, which must know its own blocks, as all allocators of freehold do. It
// needs no Close. It panics if next is nil.
func New(next freehold.Owner) *Pool {
	if next == nil {
		panic("freehold: grpc.New: next is nil")
	}
	return &Pool{next: next}
}

// Get returns a buffer of length bytes, all zero. The caller owns it until Put, or drops it. The
// buffer is Go memory if it is too short for gRPC to return, or if the allocator is out of memory:
// a limit bounds the off-heap memory, and refuses no message.
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

// Put frees a buffer, or a prefix of it. It panics if the buffer was freed before and the allocator
// can tell. It leaves Go memory to the collector.
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

// dropped frees a buffer that can no longer be returned.
func (p *Pool) dropped(l *lease) {
	if p.live.CompareAndDelete(unsafe.SliceData(l.block), l) {
		p.next.Free(l.block)
	}
}
