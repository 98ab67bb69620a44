// Arena: a bump allocator over chunks.
//
//	chunk in use    +---------+---+-------+----------------------+
//	                | block   |pad| block |         free         |
//	                +---------+---+-------+----------------------+
//	                base                  top                    end
//
// The fast paths of Alloc and Zeroed are here. chunk.go has the slow path and
// tracks zero memory. mark.go has Mark, Rewind and Reset.

package arena

import (
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/container"
	"github.com/freehold-go/freehold/internal/owners"
	"github.com/freehold-go/freehold/internal/poison"
)

const (
	defaultChunkBytes    = 4 << 10
	defaultMaxChunkBytes = 1 << 20
)

// Options sets up an [Arena]; nil means all defaults.
type Options struct {
	// Name appears in Stats and, if the arena is dropped without Close, in the report of
	// package track. It may be empty, and several may have one name. To account for the
	// memory in profiles too, put a [freehold.Tagged] below.
	Name string

	// ChunkBytes is the size of the first chunk, in bytes. Each further chunk
	// doubles it, up to MaxChunkBytes. 0 means 4096, or MaxChunkBytes if that
	// is less; a negative value panics. A small first chunk costs more calls of
	// the parent; a large one wastes memory in small arenas.
	ChunkBytes int

	// MaxChunkBytes is the largest chunk size, in bytes. Only a chunk dedicated to one larger
	// block exceeds it. 0 means 1 MiB, or ChunkBytes if that is more; any other value below
	// ChunkBytes panics. Up to a quarter of each chunk, and the free part of the last one, are
	// wasted.
	MaxChunkBytes int

	// MaxBytes is a hard limit on the bytes in chunks, in use or spare:
	// Stats.Reserved never exceeds it. 0 means none; a negative value panics.
	MaxBytes int
}

// Arena is a bump allocator over chunks of another allocator, its parent. It
// frees all blocks at once. It implements [freehold.Owner]. It is not safe for
// concurrent use: one goroutine at a time, as for a map. [New] and [NewFixed]
// make one. Calls of the zero Arena panic, except Owns, Live, Stats, Remaining and
// Free of nil.
//
// Blocks never move and have no header. A block takes its size plus up to align-1 bytes of
// padding. Alloc is an addition and a few comparisons; padding takes the slow path
// (BenchmarkAlloc). A chunk costs one Alloc or Zeroed of the parent. Reset takes constant time
// (BenchmarkReset). The arena itself takes 288 bytes on the Go heap and 48 more per chunk;
// [Arena.Rewind] tells the cost of nested marks.
//
// Free and Resize panic for a slice outside of the arena's chunks. They do not detect a double
// free, or a free of part of a block, unless it is at the end of the current chunk's blocks.
type Arena struct {
	_ container.NoCopy

	// Addresses in the current chunk, all 0 if there is none:
	//
	//	base <= top <= end
	//	[top, zeroTo) is zero, if top < zeroTo
	//	[max(top, dirtyTo), end) is zero
	top     uintptr        // of the blocks; free memory begins here
	fastEnd uintptr        // end, or top in a checked arena, which has no fast path
	zeroTo  uintptr        // see clearTo
	base    unsafe.Pointer // of the chunk; keeps Go memory alive
	live    int            // blocks handed out that have not ended
	end     uintptr        // of the chunk
	dirtyTo uintptr        // the highest top so far, lowered when memory was cleared
	ahead   int            // bytes to clear beyond the next block that needs clearing

	// chunks[:used] are in use, in the order in which they were taken; the others are spare.
	// len(regions) == len(chunks).
	chunks   []chunk
	regions  []region // the chunks by address
	used     int
	current  int // index of the current chunk, -1 if there is none; current < used
	filled   int // bytes below the tops of the chunks in use, except the current one
	reserved int // bytes in chunks; reserved <= options.MaxBytes unless that is 0

	lastMark uint64 // number of the newest mark; see mark.go
	resetTo  uint64 // marks up to this number are stale
	endings  []ending

	options Options            // with the defaults filled in
	next    int                // size of the next chunk, in bytes
	parent  freehold.Allocator // nil if the arena is fixed
	keeper  *Recycler          // the Recycler that made the arena, or nil
	state   state
	gone    atomic.Bool // set by Close, for containers over the arena
	checked bool        // memory without a block is poison
	put     atomic.Bool // it was put into keeper and not handed out since
}

// A state says whether an arena may be used.
type state uint8

const (
	unmade state = iota // the zero Arena
	open
	idle   // in a Recycler; used == 0
	closed // no chunks
)

// New returns an empty arena over parent, which must outlive it. It panics if parent is nil. It
// takes no memory before the first block. Close returns all memory to the parent. Without Close the
// memory leaks until the parent is closed; FREEHOLD_DEBUG=leak reports that.
func New(parent freehold.Allocator, o *Options) *Arena {
	arg.NotNil("arena.New", "parent", parent)
	return newArena(parent, o.withDefaults("arena.New"))
}

func newArena(parent freehold.Allocator, o Options) *Arena {
	a := &Arena{parent: parent, options: o, current: -1, state: open, checked: poison.On()}
	if parent != nil {
		owners.Watch(a, "arena.Arena", o.Name)
	}
	return a
}

// withDefaults returns the options with defaults in place of zeros. It panics, in
// the name of call, if they are invalid.
func (o *Options) withDefaults(call string) Options {
	if o == nil {
		o = &Options{}
	}
	d := *o
	arg.AtLeast(call, "Options.ChunkBytes", d.ChunkBytes, 0)
	arg.AtLeast(call, "Options.MaxChunkBytes", d.MaxChunkBytes, 0)
	arg.AtLeast(call, "Options.MaxBytes", d.MaxBytes, 0)
	if d.MaxChunkBytes == 0 {
		d.MaxChunkBytes = max(defaultMaxChunkBytes, d.ChunkBytes)
	}
	if d.ChunkBytes == 0 {
		d.ChunkBytes = min(defaultChunkBytes, d.MaxChunkBytes)
	}
	arg.AtLeast(call, "Options.MaxChunkBytes", d.MaxChunkBytes, d.ChunkBytes)
	return d
}

// Alloc implements [freehold.Allocator]. The block's contents are undefined. The
// error is the parent's, or says that MaxBytes would be exceeded.
func (a *Arena) Alloc(size, align int) ([]byte, error) {
	// The first comparison rejects an align that is no power of two or needs
	// padding: align <= 0 shares a bit with align-1, or with top. The second
	// rejects a size that does not fit: size-1 wraps around for size <= 0.
	from, mask := a.top, uintptr(align-1)
	if (from|uintptr(align))&mask != 0 || uintptr(size-1) >= a.fastEnd-from {
		return a.allocSlow(size, align, false)
	}
	a.top = from + uintptr(size)
	a.live++
	return blockAt(from, size), nil
}

// Zeroed implements [freehold.Allocator], with the errors of Alloc. It takes chunks by the parent's
// Zeroed and does not clear memory known to be zero. It clears used memory up to 1 KiB ahead.
func (a *Arena) Zeroed(size, align int) ([]byte, error) {
	from, mask := a.top, uintptr(align-1)
	if (from|uintptr(align))&mask != 0 || uintptr(size-1) >= a.fastEnd-from {
		return a.allocSlow(size, align, true)
	}
	to := from + uintptr(size)
	if to > a.zeroTo {
		a.clearTo(from, to)
	}
	a.top = to
	a.live++
	return blockAt(from, size), nil
}

// Resize implements [freehold.Allocator]. It always shrinks a block in place. It grows the newest
// block in place if that fits its chunk. Only the bytes cut off the newest block are reused. Size 0
// frees b.
func (a *Arena) Resize(b []byte, size int) ([]byte, bool) {
	const call = "arena.Arena.Resize"
	arg.AtLeast(call, "size", size, 0)
	if len(b) > 0 {
		a.mustBeOpen(call)
	}
	switch {
	case size == 0:
		a.Free(b)
		return []byte{}, true
	case len(b) == 0:
		return nil, false
	}
	if !a.isNewest(b) {
		a.mustHold(call, b)
		if size > len(b) {
			return nil, false
		}
		if a.checked {
			poison.Leave(b[size:])
		}
		return b[:size:size], true
	}
	from := addressOf(b)
	to := from + uintptr(size)
	switch {
	case uintptr(size) > a.end-from:
		return nil, false
	case to < a.top:
		a.lower(to)
	case to > a.top:
		if a.checked {
			a.claim(to)
		}
		a.top = to
	}
	return a.block(from, size), true
}

// Free implements [freehold.Allocator]. Later blocks reuse the bytes of the newest block. The block
// before it then becomes the newest, unless there is padding between them. For any other block Free
// only lowers Live. It panics if b is not from this arena. It panics in some cases if b is not
// live.
func (a *Arena) Free(b []byte) {
	if len(b) == 0 {
		if cap(b) > 0 && a.holds(addressOf(b)) {
			arg.Panicf("arena.Arena.Free", "0 bytes at %#x with a capacity of %d: a block is freed whole", addressOf(b), cap(b))
		}
		return
	}
	a.mustBeOpen("arena.Arena.Free")
	newest := a.isNewest(b)
	if !newest {
		a.mustHold("arena.Arena.Free", b)
	}
	if a.live == 0 {
		arg.Panicf("arena.Arena.Free", "%s at %#x, and no block is live", arg.Bytes(len(b)), addressOf(b))
	}
	a.live--
	if newest {
		a.lower(addressOf(b))
	} else if a.checked {
		poison.Leave(b)
	}
}

// Owns implements [freehold.Owner]. It is true for any part of the arena's
// chunks, live or not.
func (a *Arena) Owns(b []byte) bool {
	return len(b) > 0 && a.holds(addressOf(b))
}

// Reserve guarantees that the next size bytes of blocks and padding come from one chunk, without a
// call of the parent. Errors are as for Alloc. A negative size panics.
func (a *Arena) Reserve(size int) error {
	a.mustBeOpen("arena.Arena.Reserve")
	arg.AtLeast("arena.Arena.Reserve", "size", size, 0)
	if uintptr(size) <= a.end-a.top {
		return nil
	}
	i, err := a.findSpare(size, 1, false)
	if err != nil {
		return err
	}
	a.use(i)
	return nil
}

// Trim returns all spare chunks to the parent. Chunks in use stay; after a Reset
// there are none.
func (a *Arena) Trim() {
	a.mustBeOpen("arena.Arena.Trim")
	a.trim(0)
}

// TrimTo returns spare chunks to the parent, newest and thus largest first, until
// the arena holds at most size bytes or has no spare chunk. A negative size panics.
func (a *Arena) TrimTo(size int) {
	a.mustBeOpen("arena.Arena.TrimTo")
	arg.AtLeast("arena.Arena.TrimTo", "size", size, 0)
	a.trim(size)
}

func (a *Arena) trim(maxBytes int) {
	for !a.fixed() && len(a.chunks) > a.used && a.reserved > maxBytes {
		a.giveBack()
	}
	if len(a.chunks) == 0 {
		a.next = 0
	}
}

// Close ends all blocks and returns all memory to the parent, one Free per chunk. Later calls that
// allocate, resize or free a block, or change the arena in another way, panic. Close, Free of nil
// and calls that only report still work. Close the arena before its parent: if the parent is a
// closed [freehold.Heap], Close panics. The memory of [NewFixed] is the caller's again.
func (a *Arena) Close() {
	if a.state == closed {
		return
	}
	a.mustBeOpen("arena.Arena.Close")
	a.close()
}

func init() {
	owners.AddTraits(func(parent any) (t owners.Traits, ok bool) {
		switch a := parent.(type) {
		case *Arena:
			return owners.Traits{Closed: &a.gone, Solo: true, Ends: true}, true
		case *Shared:
			return owners.Traits{Closed: &a.closed, Ends: true}, true
		}
		return t, false
	})
}

func (a *Arena) close() {
	if len(a.chunks) > 0 && !a.fixed() {
		const call = "arena.Arena.Close"
		owners.MustHaveParent(call, a.parent)
		if a.checked {
			owners.AskParent(call, a.parent) // its memory would fault after its Close
		}
	}
	a.Reset()
	a.trim(0)
	if a.fixed() && a.reserved > 0 {
		lendGoMemory(a.chunks[0].mem, -1)
		if a.checked {
			mustBePoison(a.chunks[0].mem)
		}
	}
	a.chunks, a.regions, a.endings, a.reserved = nil, nil, nil, 0
	a.state = closed
	a.gone.Store(true)
	owners.Closed(a)
}

// Live returns the number of live blocks. It costs one load. It may be too high
// after a Rewind: Rewind does not know which blocks older than its Mark were
// freed since.
func (a *Arena) Live() int { return a.live }

// isNewest reports whether b ends at top.
func (a *Arena) isNewest(b []byte) bool {
	from := addressOf(b)
	return from+uintptr(len(b)) == a.top && from >= uintptr(a.base)
}

// mustHold panics if b cannot be a live block. b is not the newest block.
func (a *Arena) mustHold(call string, b []byte) {
	from := addressOf(b)
	if !a.holds(from) {
		arg.Panicf(call, "%s at %#x, which this arena did not hand out; was it moved by append?", arg.Bytes(len(b)), from)
	}
	if uintptr(a.base) <= from && from < a.end && from+uintptr(len(b)) > a.top {
		arg.Panicf(call, "%s at %#x, a block that has ended", arg.Bytes(len(b)), from)
	}
}

// mustBeOpen panics, in the name of call, unless the arena is open.
func (a *Arena) mustBeOpen(call string) {
	if a.state != open {
		a.refuse(call)
	}
}

func (a *Arena) refuse(call string) {
	switch a.state {
	case unmade:
		arg.Panicf(call, "zero value: arena.New makes an Arena")
	case idle:
		refusePut(call)
	}
	arg.Panicf(call, "the arena is closed")
}

func refusePut(call string) { arg.Panicf(call, "the arena was put into its Recycler") }

// A header is the layout of a []byte.
type header struct {
	data     unsafe.Pointer
	len, cap int
}

// block returns the size bytes at from. It skips the checks of unsafe.Slice, which take a tenth of
// the time of Alloc (BenchmarkAlloc).
//
// Precondition: the bytes are in the current chunk, and size >= 0.
func (a *Arena) block(from uintptr, size int) []byte {
	h := header{unsafe.Add(a.base, from-uintptr(a.base)), size, size}
	return *(*[]byte)(unsafe.Pointer(&h))
}

// blockAt is block without base, whose load takes a sixth of the time of Alloc. It makes a pointer
// of an address, and the chunk of [NewFixed] may be Go memory. Go memory does not move, but the
// collector frees it if it sees only the address.
//
// Precondition: as for block. The caller also uses the arena after its last call of another
// function. From there on the goroutine stops only at asynchronous preemptions, where the collector
// takes each word of the frame and each register for a possible pointer. Builds without inlining or
// with checkptr call blockAt itself. It calls nothing, and has no stack check at which the
// goroutine could stop.
//
//go:nosplit
//go:nocheckptr
func blockAt(from uintptr, size int) []byte {
	h := header{*(*unsafe.Pointer)(unsafe.Pointer(&from)), size, size}
	return *(*[]byte)(unsafe.Pointer(&h))
}

// addressOf returns the address of b's first byte.
func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
