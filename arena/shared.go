// Shared: a concurrent bump allocator, with a chunk for each processor.
//
// A processor cuts blocks off the front of its chunk. It takes no lock and writes no word that
// processors share:
//
//	table      | 0 | 1 | 2 | ...          a slot for each processor
//	             |   |
//	           chunk chunk                shared_chunk.go
//	             ^
//	             | replaces a full chunk, under mu: shared_refill.go
//	           spare <- retired <- full   Reset: shared_reset.go
//	             ^
//	           parent                     Trim returns spare chunks

package arena

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/epoch"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/owners"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/poison"
	"github.com/freehold-go/freehold/internal/retire"
)

// SharedOptions sets up a [Shared]; nil means all defaults.
type SharedOptions struct {
	// Name appears in Stats and, if the arena is dropped without Close, in the report of
	// package track. It may be empty, and several may have one name. To account for the
	// memory in profiles too, put a [freehold.Tagged] below.
	Name string

	// ChunkBytes is the size of a processor's chunk, in bytes. A block of more
	// than a quarter of it may get a dedicated chunk of just its size. 0 means
	// 256 KiB, or 2 MiB with HugePages; a negative value panics.
	ChunkBytes int

	// MaxBytes is a hard limit, in bytes, on the arena's memory from its parent
	// at any moment. 0 means none; a negative value panics. A refusal costs about
	// 1 us plus the parent's own. It stops the world, for about 20 us, only if a
	// processor's chunk may fit the block, so repeated refusals stop it once.
	MaxBytes int

	// HugePages asks the system for huge pages for the chunks, as
	// [freehold.Advise] does, where the parent's memory allows it. Chunks of a
	// multiple of 2 MiB are then aligned to 2 MiB.
	HugePages bool

	// Domain holds the arena's guards; nil means a new Domain. Containers of one [epoch.Domain]
	// share guards: a guard from any of them protects the blocks of all, and delays recycling in
	// all. Zeroed holds a guard while it clears a block.
	Domain *epoch.Domain
}

// Shared is a bump allocator for any number of goroutines. Alloc takes the next bytes of the
// processor's chunk, Free only counts, and [Shared.Reset] gives up all blocks at once while other
// goroutines may allocate and read. It implements [freehold.Owner].
//
// A block is valid until Close, or until the first Reset that returns after its Alloc was called. A
// goroutine that uses or allocates blocks while another may call Reset must hold an [epoch.Guard]:
// see Reset.
//
// Alloc of a small block takes no lock and scales with the processors (BenchmarkSharedAlloc64). The
// next chunk comes from recycled memory or from the parent, under the arena's lock. Each processor
// keeps one partly used chunk, and up to a quarter of each chunk is wasted at its end. The arena
// itself takes about 500 bytes on the Go heap, up to 8 KiB more with more than 16 processors, and
// 128 bytes for each chunk.
//
// [NewShared] makes one. Calls of the zero Shared panic, except Close, Owns, Live,
// Reserved, Stats and Free of nil.
type Shared struct {
	name    string
	readers *epoch.Domain

	parent     freehold.Allocator // called under mu only
	chunkBytes int
	chunkAlign int
	maxBytes   int
	hugePages  bool
	checked    bool // recycled memory is poisoned

	mu     sync.Mutex  // guards the fields below
	closed atomic.Bool // changes under mu

	// Each chunk with memory is in chunks, and in either the table or exactly one of the lists
	// below.
	chunks         []*sharedChunk             // by address
	full           []*sharedChunk             // have blocks of this generation
	partial        spareSet                   // have blocks of this generation, and free bytes
	retired        retire.Queue[*sharedChunk] // have blocks of earlier generations only
	spare          spareSet                   // ready for use
	spareDedicated spareSet                   // ready for use; dedicated chunks
	reserved       int                        // bytes in chunks; at most maxBytes if that is not 0
	live           int                        // blocks of this generation that chunks in the table do not count
	liveBytes      int

	generation atomic.Uint64          // number of Resets so far; grows under mu
	table      pin.Table[sharedChunk] // changed under mu; last, as pin.New demands
}

const _ = -(unsafe.Sizeof(Shared{}) ^ (unsafe.Offsetof(Shared{}.table) + unsafe.Sizeof(Shared{}.table)))

const (
	sharedChunkBytes = 256 << 10
	hugeBytes        = 2 << 20
	lineBytes        = 64 // alignment of chunks, against false sharing
)

// NewShared returns an empty arena over parent, which must outlive it. It panics if parent is nil.
// It takes no memory before the first block; see [Shared.Reserve]. Close returns all memory. The
// arena calls the parent under its own lock, so a parent without other users need not be safe for
// concurrent use.
func NewShared(parent freehold.Allocator, o *SharedOptions) *Shared {
	const call = "arena.NewShared"
	arg.NotNil(call, "parent", parent)
	if o == nil {
		o = &SharedOptions{}
	}
	arg.AtLeast(call, "SharedOptions.ChunkBytes", o.ChunkBytes, 0)
	arg.AtLeast(call, "SharedOptions.MaxBytes", o.MaxBytes, 0)
	s := pin.New[Shared]()
	s.name, s.parent = o.Name, parent
	s.chunkBytes, s.chunkAlign = o.ChunkBytes, lineBytes
	s.maxBytes, s.hugePages, s.checked = o.MaxBytes, o.HugePages, poison.On()
	s.readers = o.Domain
	if s.readers == nil {
		s.readers = new(epoch.Domain)
	}
	if s.chunkBytes == 0 {
		s.chunkBytes = sharedChunkBytes
		if o.HugePages {
			s.chunkBytes = hugeBytes
		}
	}
	if o.HugePages && s.chunkBytes%hugeBytes == 0 {
		s.chunkAlign = hugeBytes
	}
	s.table.Init(&noChunk)
	owners.Watch(s, "arena.Shared", s.name)
	return s
}

// Alloc implements [freehold.Allocator]; align may be any power of two. The error matches
// [freehold.ErrOutOfMemory] if MaxBytes would be exceeded; otherwise it is the parent's.
func (s *Shared) Alloc(size, align int) ([]byte, error) { return fast.alloc(s, size, align, 0, 0) }

// Zeroed implements [freehold.Allocator], with the errors of Alloc. A chunk taken for Zeroed is
// cleared as a whole; there Zeroed costs little more than Alloc. In a chunk taken for Alloc it
// clears each block under a guard.
func (s *Shared) Zeroed(size, align int) ([]byte, error) {
	return fast.zeroed(s, size, align, 0, 0)
}

// zeroSlow is Zeroed if the processor's chunk is full or not cleared.
func (s *Shared) zeroSlow(size, align int) ([]byte, error) {
	if s.readers == nil {
		s.mustBeOpen("arena.Shared.Zeroed")
	}
	// The guard keeps the block's memory from being recycled until it is cleared.
	g := s.readers.Enter()
	defer g.Leave()
	b := s.takeUncleared(size, align)
	zero := false
	var err error
	if b == nil {
		b, zero, err = s.refill(size, align, true)
	}
	if !zero {
		clear(b)
	}
	return b, err
}

// takeUncleared is Alloc without the slow path: it returns nil if the processor's
// chunk does not fit the block.
func (s *Shared) takeUncleared(size, align int) (b []byte) {
	if size > 0 && align > 0 && align&(align-1) == 0 {
		slot := s.table.Enter()
		if c := s.at(slot); c != nil {
			b = c.take(size, align)
		}
		s.table.Leave(slot)
	}
	return b
}

// at returns the chunk of this generation in a slot that the caller holds, or nil. It is nil for
// the zero Shared.
func (s *Shared) at(slot int) *sharedChunk {
	if c := s.table.Value(slot); c != nil && c.generation == s.generation.Load() {
		return c
	}
	return nil
}

// Resize implements [freehold.Allocator]. A block shrinks in place; the bytes cut
// off stay unused until Reset. It grows in place if it is the newest block of the
// current processor's chunk and fits there.
func (s *Shared) Resize(b []byte, size int) (r []byte, ok bool) {
	arg.AtLeast("arena.Shared.Resize", "size", size, 0)
	switch {
	case len(b) == 0:
		return []byte{}, size == 0
	case size <= len(b):
		live := 0
		if size == 0 {
			live = -1
		}
		s.count(live, size-len(b))
		return b[:size:size], true
	}
	slot := s.table.Enter()
	if c := s.at(slot); c != nil {
		r, ok = c.extend(b, size)
	}
	s.table.Leave(slot)
	return r, ok
}

// Free implements [freehold.Allocator]. It only counts: the memory is reused after Reset. It does
// not detect invalid frees. Blocks given up by Reset need not be freed; Free of one makes Live too
// low.
func (s *Shared) Free(b []byte) {
	if len(b) > 0 {
		s.count(-1, -len(b))
	}
}

// count adds to the number of live blocks and to their bytes.
func (s *Shared) count(live, bytes int) {
	slot := s.table.Enter()
	c := s.at(slot)
	if c != nil {
		c.live += live
		c.liveBytes += bytes
	}
	s.table.Leave(slot)
	if c == nil {
		s.countLocked(live, bytes)
	}
}

// Owns implements [freehold.Owner]. It reports whether b begins in one of the arena's chunks, live
// or not. It is fast for the chunk of the current processor, and takes the arena's lock for others.
func (s *Shared) Owns(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	addr := addressOf(b)
	slot := s.table.Enter()
	c := s.at(slot)
	here := c != nil && c.holds(addr)
	s.table.Leave(slot)
	return here || s.ownsLocked(addr)
}
