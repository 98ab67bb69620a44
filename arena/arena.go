// Arena: blocks cut off chunks, one after the other.
//
//	chunk in use    +---------+---+-------+----------------------+
//	                | block   |pad| block |         room         |
//	                +---------+---+-------+----------------------+
//	                base                  top                    end
//
// Alloc and Zeroed are here; what they do when the block does not fit, and what
// is known to be zero, is in chunk.go. Mark, Rewind and Reset are in mark.go.

package arena

import (
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
)

const (
	defaultChunkBytes    = 4 << 10
	defaultMaxChunkBytes = 1 << 20
)

// Options sets up an [Arena]; nil means all defaults.
type Options struct {
	// ChunkBytes is the size of the first chunk, in bytes; each further one is
	// twice as large as the one before, up to MaxChunkBytes. 0 means 4096, or
	// MaxChunkBytes if that is less; negative is a panic. A small first chunk
	// costs more calls of the parent, a large one memory that is never used.
	ChunkBytes int

	// MaxChunkBytes is the largest size of a chunk, in bytes, other than one
	// that is made for a single larger block. 0 means 1 MiB, or ChunkBytes if
	// that is more; otherwise less than ChunkBytes, and negative, is a panic.
	// Up to a quarter of a chunk is wasted when the next block does not fit it,
	// and the last chunk is as empty as it happens to be.
	MaxChunkBytes int

	// MaxBytes is a hard limit on the bytes that the arena holds in chunks, in
	// use or spare: Stats.Reserved never passes it. 0 means none; negative is
	// a panic.
	MaxBytes int
}

// Arena hands out blocks from chunks of another allocator, its parent, and ends
// them all at once. It implements [freehold.Owner]. It is not safe for
// concurrent use: one goroutine at a time, as for a map. [New] and [NewFixed]
// make one; most methods of the zero Arena panic.
//
// Blocks never move and have no header. A block takes its size, and up to
// align-1 bytes more if the one before it ends at an odd place. It costs an
// addition and a few comparisons, 2.5 ns, or 5.5 ns where there is padding
// (BenchmarkAlloc); a chunk costs the parent's Alloc or Zeroed, and some Go
// memory for the arena's books. Reset takes the same few ns whatever the arena
// holds. An arena itself is 256 bytes on the Go heap, and 48 more for each
// chunk.
//
// Free and Resize panic for a slice outside of the arena's chunks. A block that
// is freed twice, or by a part of it, is not detected where it lies in the
// middle of others.
type Arena struct {
	_ noCopy

	// Addresses in the current chunk, all 0 if there is none:
	//
	//	base <= top <= end
	//	[top, zeroTo) is zero, if top < zeroTo
	//	[max(top, dirtyTo), end) is zero
	top     uintptr        // where the room begins
	end     uintptr        // of the chunk
	zeroTo  uintptr        // see clearTo
	base    unsafe.Pointer // of the chunk; the only pointer that blocks are made from
	live    int            // blocks handed out and neither freed nor ended
	dirtyTo uintptr        // the highest that top has been, as far as it is not cleared
	ahead   int            // bytes to clear beyond the next block that needs it

	// chunks[:used] are in use, in the order in which they came; the others are
	// spare. len(regions) == len(chunks).
	chunks   []chunk
	regions  []region // the chunks by address
	used     int
	current  int // index of the current chunk, -1 if there is none; current < used
	filled   int // bytes below the tops of the chunks in use, but for the current one
	reserved int // bytes in chunks; reserved <= options.MaxBytes unless that is 0

	lastMark uint64 // number of the newest mark; see mark.go
	resetTo  uint64 // marks up to this number are stale
	stale    []numbers

	options Options            // with the defaults filled in
	next    int                // bytes that the next chunk should have
	parent  freehold.Allocator // nil if the arena is fixed
	member  *membership        // in a Registry; nil if in none
	keeper  *Recycler          // that the arena came from, or nil
	state   state
}

// noCopy makes go vet report a copy of the struct that it is a field of, as if it
// were a mutex.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// A state says whether an arena may be used.
type state uint8

const (
	unmade state = iota // the zero Arena
	open
	idle   // in a Recycler; used == 0
	closed // no chunks
)

// New returns an empty arena over parent, which must outlive it; nil is a panic.
// It takes no memory before the first block. Close gives all memory back; an
// arena that is dropped without Close keeps it, unless the parent is closed.
func New(parent freehold.Allocator, o *Options) *Arena {
	arg.NotNil("arena.New", "parent", parent)
	return newArena(parent, o.withDefaults("arena.New"))
}

func newArena(parent freehold.Allocator, o Options) *Arena {
	return &Arena{parent: parent, options: o, current: -1, state: open}
}

// withDefaults returns the options of a call with defaults in the place of zeros;
// it panics if they make no sense.
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

// Alloc implements [freehold.Allocator]. The error is the parent's, or says that
// MaxBytes would be passed. Memory that the parent gave as zero is not cleared,
// and other memory is undefined.
func (a *Arena) Alloc(size, align int) ([]byte, error) {
	// One comparison for the alignment, of top and as such, and one for the
	// size: 0 and less are above all after the subtraction. An align of 0 or
	// less has a bit in common with top, or with itself less 1.
	from, mask := a.top, uintptr(align-1)
	if (from|uintptr(align))&mask != 0 || uintptr(size-1) >= a.end-from {
		return a.allocSlow(size, align, false)
	}
	if debug {
		a.mustBePoison(from, from+uintptr(size))
	}
	a.top = from + uintptr(size)
	a.live++
	return a.block(from, size), nil
}

// Zeroed implements [freehold.Allocator]. It clears nothing twice: chunks that a
// Zeroed asks for are the parent's Zeroed, and what is known to be zero is not
// touched. It clears used memory somewhat ahead, by up to 1 KiB.
func (a *Arena) Zeroed(size, align int) ([]byte, error) {
	from, mask := a.top, uintptr(align-1)
	if (from|uintptr(align))&mask != 0 || uintptr(size-1) >= a.end-from {
		return a.allocSlow(size, align, true)
	}
	if debug {
		a.mustBePoison(from, from+uintptr(size))
	}
	to := from + uintptr(size)
	if to > a.zeroTo {
		a.clearTo(from, to)
	}
	a.top = to
	a.live++
	return a.block(from, size), nil
}

// Resize implements [freehold.Allocator]: in place, to a smaller size always,
// and to a larger one if b is the newest block and its chunk has room. What is
// cut off the newest block is used again. Size 0 frees b.
func (a *Arena) Resize(b []byte, size int) ([]byte, bool) {
	const call = "arena.Arena.Resize"
	a.mustBeOpen(call)
	arg.AtLeast(call, "size", size, 0)
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
		if debug {
			poison(b[size:])
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
		if debug {
			a.mustBePoison(a.top, to)
		}
		a.top = to
	}
	return a.block(from, size), true
}

// Free implements [freehold.Allocator]. The bytes of the newest block are used
// again; if the one before it ends where it began, that is the newest then. Of
// any other block Free only counts that it has ended.
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
		arg.Panicf("arena.Arena.Free", "%d bytes at %#x, and no block is live", len(b), addressOf(b))
	}
	a.live--
	if newest {
		a.lower(addressOf(b))
	} else if debug {
		poison(b)
	}
}

// Owns implements [freehold.Owner]. It is true for any part of the arena's
// chunks, in use or not.
func (a *Arena) Owns(b []byte) bool {
	return len(b) > 0 && a.holds(addressOf(b))
}

// Reserve makes sure that the next size bytes of blocks, and of padding between
// them, come from one chunk and need no memory from the parent. The error is
// that of Alloc. A negative size is a panic.
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
	a.publish()
	return nil
}

// Trim gives all spare chunks back to the parent. Chunks in use stay, and the
// arena works on; after a Reset none is in use.
func (a *Arena) Trim() {
	a.mustBeOpen("arena.Arena.Trim")
	a.trim(0)
}

// TrimTo gives spare chunks back to the parent until the arena holds no more
// than size bytes, or no spare chunk. Those that were taken last, the larger
// ones, go first. A negative size is a panic.
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
	a.publish()
}

// Close ends all blocks and gives all memory back to the parent. Later calls
// panic, but for Close and those that only look. It takes one Free of the parent
// for each chunk. The arena is closed before its parent: Close after that of a
// [freehold.Heap] panics, and in builds with the tag freehold_debug faults. The
// memory of [NewFixed] is its user's again.
func (a *Arena) Close() {
	if a.state == closed {
		return
	}
	a.mustBeOpen("arena.Arena.Close")
	a.close()
}

func (a *Arena) close() {
	a.Reset()
	a.trim(0)
	for _, c := range a.chunks { // of a fixed arena: its user's
		mustBePoison(c.mem)
	}
	a.chunks, a.regions, a.stale, a.reserved = nil, nil, nil, 0
	a.state = closed
	a.leaveRegistry()
}

// Live returns the number of blocks that were handed out and have not ended, at
// the cost of a load. It is too high by the blocks that are older than a Mark,
// were freed after it, and were followed by a Rewind to it: Rewind does not know
// them.
func (a *Arena) Live() int { return a.live }

// isNewest reports whether b ends where the room begins.
func (a *Arena) isNewest(b []byte) bool {
	from := addressOf(b)
	return from+uintptr(len(b)) == a.top && from >= uintptr(a.base)
}

// mustHold panics if b, which is not the newest block, cannot be a block.
func (a *Arena) mustHold(call string, b []byte) {
	from := addressOf(b)
	if !a.holds(from) {
		arg.Panicf(call, "%d bytes at %#x, which this arena did not hand out; was it moved by append?", len(b), from)
	}
	if uintptr(a.base) <= from && from < a.end && from+uintptr(len(b)) > a.top {
		arg.Panicf(call, "%d bytes at %#x, a block that has ended", len(b), from)
	}
}

// mustBeOpen panics if the arena is not to be used.
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
		arg.Panicf(call, "the arena was put into its Recycler")
	}
	arg.Panicf(call, "the arena is closed")
}

// A header is what a []byte is to the compiler.
type header struct {
	data     unsafe.Pointer
	len, cap int
}

// block returns the size bytes from an address on. unsafe.Slice would test again
// what is known, for a tenth of the time of Alloc (BenchmarkAlloc).
//
// Precondition: they lie in the current chunk, and size is not negative.
func (a *Arena) block(from uintptr, size int) []byte {
	h := header{unsafe.Add(a.base, from-uintptr(a.base)), size, size}
	return *(*[]byte)(unsafe.Pointer(&h))
}

// addressOf returns the address of b's first byte.
func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
