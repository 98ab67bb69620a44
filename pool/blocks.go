// Blocks: a concurrent allocator of blocks of one size, with per-processor free lists.
//
//	goroutine <-- block --> stack of its processor <-- batches --> central <-- chunks --> parent
//
// This file is the interface. stack.go has the per-processor stacks of free blocks, central.go the
// central free list behind them, and chunk.go the layout of memory and the lookup of a block by its
// address.

package pool

import (
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/epoch"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/owners"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/poison"
)

// Options sets up [Blocks] and [Pool]; nil means all defaults.
type Options struct {
	// Name appears in Stats and, if the pool is dropped without Close, in the report of
	// package track. It may be empty, and several may have one name. To account for the
	// memory in profiles too, put a [freehold.Tagged] below.
	Name string

	// MaxBlocks is a hard limit on the pool's blocks, in use or not: Stats.Blocks never exceeds
	// it. 0 means none; a negative value panics.
	MaxBlocks int

	// MaxBytes is a hard limit, in bytes, on the memory that the pool holds from
	// its parent at any moment, metadata included: Stats.Reserved never exceeds
	// it. 0 means none; a negative value panics.
	MaxBytes int

	// Domain holds the pool's guards; nil means a Domain of its own. Containers of one
	// [epoch.Domain] share guards: a guard from any of them protects the blocks of all, and keeps
	// the retired blocks of all.
	Domain *epoch.Domain
}

// Blocks allocates blocks of one size. It implements [freehold.Owner], is safe for concurrent use
// and must not be copied.
//
// NewBlocks makes a Blocks. Calls of the zero value that get, free or look up a block, or concern
// the pool as a whole, panic and name NewBlocks; Enter panics with a nil dereference.
//
// The parent supplies chunks of 64 KiB, or of eight blocks if that is more. The blocks of a chunk
// are contiguous. Metadata takes four bytes and a bit for each block, from the parent too. On the
// Go heap, each processor that uses the pool takes 2 KiB and each chunk about 100 bytes. A freed
// block is reused at once. Only Trim and Close return memory to the parent.
//
// Out of memory means that the limit was reached or the parent refused, and that no block is free.
// If other processors may hold free blocks, that check stops the world for about 20 microseconds.
//
// Alloc and Free take a lock only on the slow path, which moves a batch of up to 64 blocks.
// BenchmarkPair measures a pair.
type Blocks struct {
	stride   uintptr                                 // bytes from block to block
	capacity uint64                                  // the most entries on a stack
	caches   atomic.Pointer[[]atomic.Pointer[cache]] // by number

	shift     uint         // a chunk has 1<<shift bytes, and that alignment
	versioned bool         // blocks have generations
	checked   bool         // free blocks are poisoned: see poison.go
	of        reflect.Type // type of the values; nil for Blocks

	statusShift uint // a status has 1<<statusShift bytes, generation included

	parent   freehold.Allocator
	limits   Options
	perChunk int
	misfit   error // the error for requests of larger blocks; nil in the zero value

	central    central
	retireList retireList
	epochs     *epoch.Domain

	// The fields that the fast paths read.
	table     atomic.Pointer[table]
	chunkMask uintptr          // of an address: its chunk's base
	recip     uint64           // 2^64 / stride, rounded up
	bytes     int              // size of a block, at most stride
	align     int              // of blocks; stride is a multiple of it
	stacks    pin.Table[stack] // of each processor; last, as pin.New demands
}

const _ = -(unsafe.Sizeof(Blocks{}) ^ (unsafe.Offsetof(Blocks{}.stacks) + unsafe.Sizeof(Blocks{}.stacks)))

const (
	minChunkBytes   = 64 << 10
	minChunkBlocks  = 8
	minStrideBytes  = 8
	maxBlockBytes   = 16 << 20
	maxStackBytes   = 256 << 10 // the most bytes on a stack, but at least two blocks
	fullStackBlocks = 128       // two batches
)

// NewBlocks returns a pool of blocks of size bytes, 1 to 16 MiB, each at a
// multiple of align. A block takes size rounded up to a multiple of align and of
// 8. Memory comes from parent, which must outlive the pool. NewBlocks takes none;
// the first Alloc does, and Close gives it back.
//
// It panics if parent is nil, if size is out of range, and if align is not a power
// of two up to 16 MiB.
func NewBlocks(parent freehold.Allocator, size, align int, o *Options) *Blocks {
	b := pin.New[Blocks]()
	b.init("pool.NewBlocks", parent, size, align, o, nil)
	return b
}

// init makes b a pool of blocks, or of values of the type of unless that is nil. pin.New made b,
// alone or in a Pool.
func (b *Blocks) init(call string, parent freehold.Allocator, size, align int, o *Options, of reflect.Type) {
	if o != nil {
		b.limits = *o
	}
	arg.NotNil(call, "parent", parent)
	arg.Range(call, "block size", size, 1, maxBlockBytes)
	arg.Range(call, "alignment", align, 1, maxBlockBytes)
	arg.Align(call, align)
	arg.AtLeast(call, "Options.MaxBlocks", b.limits.MaxBlocks, 0)
	arg.AtLeast(call, "Options.MaxBytes", b.limits.MaxBytes, 0)
	unit := max(align, minStrideBytes)
	stride := (size + unit - 1) &^ (unit - 1)
	b.parent, b.bytes, b.align, b.of, b.versioned, b.checked = parent, size, align, of, of != nil, poison.On()
	b.stride = uintptr(stride)
	b.statusShift = statusShift
	if b.versioned {
		b.statusShift = versionedShift
	}
	b.recip = math.MaxUint64/uint64(stride) + 1
	b.capacity = uint64(min(max(maxStackBytes/stride, 2), fullStackBlocks)) &^ 1
	b.misfit = fmt.Errorf("%w: the request exceeds a block of this pool, %s at a multiple of %d", freehold.ErrOutOfMemory, arg.Bytes(size), align)

	b.shift = uint(bits.Len(uint(max(minChunkBytes, minChunkBlocks*stride) - 1)))
	if n := b.limits.MaxBlocks; n > 0 && n < 1<<b.shift/stride {
		b.shift = uint(bits.Len(uint(n*stride - 1)))
	}
	b.setChunk()
	for n := b.limits.MaxBytes; n > 0 && b.chunkCost() > n && 1<<b.shift >= 2*stride; {
		b.shift--
		b.setChunk()
	}
	b.stacks.Init(&noStack)
	b.epochs = b.limits.Domain
	if b.epochs == nil {
		b.epochs = new(epoch.Domain)
	}
	b.table.Store(newTable(0))
	b.caches.Store(new([]atomic.Pointer[cache]))
	kind := "pool.Blocks"
	if of != nil {
		kind = "pool.Pool"
	}
	owners.Watch(b, kind, b.limits.Name)
}

// setChunk sets the fields that depend on shift.
func (b *Blocks) setChunk() {
	b.perChunk = 1 << b.shift / int(b.stride)
	b.chunkMask = -(uintptr(1) << b.shift)
}

// Alloc implements [freehold.Allocator]. It returns the first size bytes of a
// block. If size or align is larger than the pool's, the error matches
// [freehold.ErrOutOfMemory], so [freehold.NewFallback] asks the next allocator.
func (b *Blocks) Alloc(size, align int) ([]byte, error) { return fast.alloc(b, size, align, 0, 0) }

// fits reports whether a block serves the request.
func (b *Blocks) fits(size, align int) bool {
	return uint(size-1) < uint(b.bytes) && uint(align-1) < uint(b.align) && align&(align-1) == 0
}

// noBlock is Alloc for a request that no block fits.
func (b *Blocks) noBlock(call string, size, align int) ([]byte, error) {
	arg.AtLeast(call, "size", size, 0)
	arg.Align(call, align)
	b.mustBeMade(call)
	if b.central.closed.Load() { // inlined: a Fallback comes here for each larger block
		b.mustBeOpen(call)
	}
	if size == 0 {
		return []byte{}, nil
	}
	return nil, b.misfit
}

// Zeroed implements [freehold.Allocator]. It clears the size bytes.
func (b *Blocks) Zeroed(size, align int) ([]byte, error) {
	if !b.fits(size, align) {
		return b.noBlock("pool.Blocks.Zeroed", size, align)
	}
	z, err := b.Alloc(size, align)
	clear(z)
	return z, err
}

// Resize implements [freehold.Allocator]. It succeeds up to the size of
// a block. It panics if r is not a live block.
func (b *Blocks) Resize(r []byte, size int) ([]byte, bool) {
	const call = "pool.Blocks.Resize"
	arg.AtLeast(call, "size", size, 0)
	switch {
	case size == 0:
		b.Free(r)
		return []byte{}, true
	case len(r) == 0:
		return nil, false
	}
	b.mustBeLive(call, r)
	if size > b.bytes {
		return nil, false
	}
	return unsafe.Slice(unsafe.SliceData(r), size), true
}

// Free implements [freehold.Allocator]. It panics if r does not begin at a live
// block, is longer than a block, or has more capacity than length. A slice whose
// length and capacity were both cut frees the whole block.
func (b *Blocks) Free(r []byte) { fast.free(b, r, 0) }

// freeNone is Free of a slice that cannot be a block. It panics unless the slice is empty.
func (b *Blocks) freeNone(r []byte) {
	const call = "pool.Blocks.Free"
	if len(r) == 0 {
		if cap(r) == 0 {
			return
		}
		b.mustBeMade(call)
		if b.chunkOf(addrOf(r)) == nil {
			return
		}
	}
	b.mustBeWhole(call, r)
}

// Owns implements [freehold.Owner]. It is true for any address in a chunk.
func (b *Blocks) Owns(r []byte) bool {
	if len(r) == 0 {
		return false
	}
	b.mustBeMade("pool.Blocks.Owns")
	return b.chunkOf(addrOf(r)) != nil
}

// GoodSize returns the size of a block for any size that fits one, and 0 for other sizes.
func (b *Blocks) GoodSize(size int) int {
	if uint(size-1) < uint(b.bytes) {
		return b.bytes
	}
	return 0
}

// GetBatch sets the first n elements of dst to whole blocks, contents undefined. If n is less than
// len(dst), the error is not nil and matches [freehold.ErrOutOfMemory]. The caller owns the n
// blocks in either case.
func (b *Blocks) GetBatch(dst [][]byte) (n int, err error) {
	b.mustBeOpen("pool.Blocks.GetBatch")
	var batch [fullStackBlocks]entry
	for n < len(dst) {
		some, err := b.getSome(batch[:min(len(batch), len(dst)-n)])
		for _, e := range batch[:some] {
			dst[n] = unsafe.Slice((*byte)(pointer(e.addr)), b.bytes)
			n++
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// PutBatch frees every block in src and skips nil and empty slices. It panics at the first block
// for which Free panics; the blocks before it are then free, the blocks after it still live. It is
// cheaper than Free for each block: blocks beyond the capacity of the processor's stack go to the
// central free list in batches of 128 (BenchmarkBatch).
func (b *Blocks) PutBatch(src [][]byte) {
	for len(src) > 0 {
		n := b.whole(src)
		if n > 0 {
			n = b.putSome(src[:n])
		}
		if n == 0 {
			b.Free(src[0])
			n = 1
		}
		src = src[n:]
	}
}

// Reset frees all blocks, live ones too, and keeps the memory. No goroutine may
// use the pool, its [Cache]s or its blocks during the call. Lookup of a handle to a
// value that was live reports false afterwards.
func (b *Blocks) Reset() { b.reset("pool.Blocks.Reset") }

// Trim frees the retired blocks that no guard protects any more. Then it returns to the parent each
// chunk in which no block is live, retired or in a cache. It stops the world for about 50
// microseconds to drain the per-processor stacks.
func (b *Blocks) Trim() { b.trim("pool.Blocks.Trim") }

// Close ends the pool and all of its blocks, live or not, and gives the memory back to the parent.
// Call [Blocks.Live] before it to detect leaks. Other goroutines must have stopped using the pool.
// Later calls that get or free a block, or change the pool in another way, panic. Close, Enter,
// Free of nil and calls that only report still work. Close the pool before its parent: if the
// parent is a closed [freehold.Heap], Close panics and other calls may fault.
//
// Close panics, and changes nothing, if a held guard of the Domain may protect a block of the pool.
// If a block is live, any guard may. Otherwise only a guard that keeps a block retired may. To
// close a pool while the Domain's other containers have readers, unlink and retire its blocks, and
// Close it once a Trim has left none live or retired.
func (b *Blocks) Close() { b.close("pool.Blocks.Close") }
