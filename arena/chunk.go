// Chunks: an arena's memory from its parent, and the tracking of zero bytes.
//
//	chunks   | in use, in the order taken | spare |
//	                 ^ current
//
// Blocks come from the current chunk. When a block does not fit, allocSlow takes a spare or a new
// chunk into use. The old or the new chunk becomes the current one, whichever has more free memory
// then. So small blocks continue in the old chunk after a large one.
//
// A chunk's bytes from dirtyTo on are zero: the parent gave them as zero, and no
// block has used them.

package arena

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/poison"
)

const (
	chunkAlign = 64 // the least alignment of a chunk, in bytes: a cache line

	// maxAhead is the most bytes that Zeroed clears ahead. It is the power of two that made
	// BenchmarkAlloc/impl=arena/zeroed fastest.
	maxAhead = 1 << 10
)

// A chunk is memory from the parent. Arena.dirtyTo replaces the current one's dirtyTo.
type chunk struct {
	mem     []byte
	dirtyTo uintptr // bytes at this address and beyond are zero
}

// A region is the address range [from, to) of a chunk.
type region struct{ from, to uintptr }

func regionOf(mem []byte) region {
	from := addressOf(mem)
	return region{from, from + uintptr(len(mem))}
}

// allocSlow is the slow path of Alloc and Zeroed: the block needs padding or
// another chunk, or the request is invalid.
func (a *Arena) allocSlow(size, align int, zeroed bool) ([]byte, error) {
	switch {
	case a.state != open || size < 0 || align <= 0 || align&(align-1) != 0:
		a.refuseRequest(size, align, zeroed)
	case size == 0:
		return []byte{}, nil
	case fits(a.top, a.end, size, align):
		return a.cut(size, align, zeroed), nil
	}
	i, err := a.findSpare(size, align, zeroed)
	if err != nil {
		return nil, err
	}
	old, oldTop, oldFree := a.current, a.top, a.end-a.top
	a.use(i)
	b := a.cut(size, align, zeroed)
	if oldFree > a.end-a.top {
		a.leave()
		a.enter(old, oldTop)
	}
	return b, nil
}

// refuseRequest panics at an invalid request.
func (a *Arena) refuseRequest(size, align int, zeroed bool) {
	call := "arena.Arena.Alloc"
	if zeroed {
		call = "arena.Arena.Zeroed"
	}
	a.mustBeOpen(call)
	arg.AtLeast(call, "size", size, 0)
	arg.Align(call, align)
}

// fits reports whether a block fits in [from, to).
func fits(from, to uintptr, size, align int) bool {
	pad := -from & uintptr(align-1)
	return pad < to-from && uintptr(size) <= to-from-pad
}

// cut cuts a block off the free memory of the current chunk.
//
// Precondition: it fits.
func (a *Arena) cut(size, align int, zeroed bool) []byte {
	if a.checked {
		return a.cutChecked(size, align, zeroed)
	}
	from := a.top + -a.top&uintptr(align-1)
	to := from + uintptr(size)
	if zeroed && to > a.zeroTo {
		a.clearTo(from, to)
	}
	a.top = to
	a.live++
	return a.block(from, size)
}

// cutChecked is cut in a checked arena. The memory beyond the block stays poison.
func (a *Arena) cutChecked(size, align int, zeroed bool) []byte {
	from := a.top + -a.top&uintptr(align-1)
	a.claim(from + uintptr(size))
	a.live++
	b := a.block(from, size)
	if zeroed {
		clear(b)
	}
	return b
}

// claim raises top in a checked arena.
func (a *Arena) claim(to uintptr) {
	mustBePoison(a.bytes(a.top, to))
	a.top, a.fastEnd = to, to
}

// mustBePoison panics if b was written to. No block held b.
func mustBePoison(b []byte) {
	if i := poison.Take(b); i >= 0 {
		arg.Panicf("arena.Arena", "the byte at %#x was written while no block held it: after a Free, Rewind or Reset, or beyond the end of a block", addressOf(b[i:]))
	}
}

// clearTo zeroes [from, to) of the current chunk's free memory, and some bytes ahead. Each call
// doubles the bytes ahead, so a short series of blocks, such as between a Mark and a Rewind, pays
// little.
func (a *Arena) clearTo(from, to uintptr) {
	if from < a.dirtyTo {
		upTo := min(a.dirtyTo, max(to, min(to+uintptr(a.ahead), a.end)))
		if from = max(from, a.zeroTo); from < upTo {
			clear(a.bytes(from, upTo))
		}
		a.ahead = min(2*a.ahead+int(to-from), maxAhead)
		if upTo < a.dirtyTo {
			a.zeroTo = upTo
			return
		}
		a.dirtyTo = to
	}
	a.zeroTo = a.end
}

// lower lowers top to an address in the current chunk.
func (a *Arena) lower(to uintptr) {
	if a.checked {
		poison.Leave(a.bytes(to, a.top))
		a.fastEnd = to
	}
	a.dirtyTo = max(a.dirtyTo, a.top)
	a.top, a.zeroTo, a.ahead = to, to, 0
}

// bytes returns [from, to) of the current chunk.
func (a *Arena) bytes(from, to uintptr) []byte {
	base := uintptr(a.base)
	return a.chunks[a.current].mem[from-base : to-base]
}

// enter makes chunk i, which is in use, the current one; its blocks end at top.
func (a *Arena) enter(i int, top uintptr) {
	c := &a.chunks[i]
	a.current = i
	a.base = unsafe.Pointer(unsafe.SliceData(c.mem))
	a.top, a.end = top, uintptr(a.base)+uintptr(len(c.mem))
	a.fastEnd = a.end
	if a.checked {
		a.fastEnd = top
	}
	a.dirtyTo, a.zeroTo, a.ahead = c.dirtyTo, top, 0
	if a.dirtyTo <= top {
		a.zeroTo = a.end
	}
	a.filled -= int(top - uintptr(a.base))
}

// leave leaves the arena without a current chunk.
func (a *Arena) leave() {
	if a.current < 0 {
		return
	}
	a.chunks[a.current].dirtyTo = max(a.dirtyTo, a.top)
	a.filled += int(a.top - uintptr(a.base))
	a.current, a.base = -1, nil
	a.top, a.end, a.fastEnd, a.zeroTo, a.dirtyTo = 0, 0, 0, 0, 0
}

// use takes spare chunk i into use and makes it the current one.
func (a *Arena) use(i int) {
	a.leave()
	a.chunks[i], a.chunks[a.used] = a.chunks[a.used], a.chunks[i]
	a.used++
	a.enter(a.used-1, addressOf(a.chunks[a.used-1].mem))
}

// findSpare returns the index of a spare chunk that fits a block. If there is
// none, it takes a chunk from the parent.
func (a *Arena) findSpare(size, align int, zeroed bool) (int, error) {
	for i := a.used; i < len(a.chunks); i++ {
		if r := regionOf(a.chunks[i].mem); fits(r.from, r.to, size, align) {
			return i, nil
		}
	}
	err := a.take(size, align, zeroed)
	if err != nil && len(a.chunks) > a.used {
		a.trim(0) // no spare chunk fits: free all to make room for one that does
		err = a.take(size, align, zeroed)
	}
	return len(a.chunks) - 1, err
}

// take takes a chunk from the parent that fits a block at its start.
//
// A block of more than a quarter of a chunk gets a dedicated chunk, so that no
// more than a quarter of a chunk is wasted at its end. If the limit or the parent
// refuses a full chunk, take asks for a half, and so on.
func (a *Arena) take(size, align int, zeroed bool) error {
	if a.fixed() {
		return a.full(size, align)
	}
	allowed := size
	if limit := a.options.MaxBytes; limit == 0 {
		allowed = math.MaxInt
	} else if allowed = limit - a.reserved; size > allowed {
		return fmt.Errorf("%w: the arena has %d bytes, a chunk of %s more would exceed the limit of %d", freehold.ErrOutOfMemory, a.reserved, arg.Bytes(size), limit)
	}
	alloc := a.parent.Alloc
	if zeroed && !a.checked {
		alloc = a.parent.Zeroed
	}
	a.next = max(a.next, a.options.ChunkBytes)
	want := min(a.next, allowed)
	if size > want/4 {
		want = size
	}
	var mem []byte
	for {
		good := freehold.GoodSize(a.parent, want)
		if good > allowed {
			good = want
		}
		var err error
		if mem, err = alloc(good, max(align, chunkAlign)); err == nil {
			break
		}
		if want == size {
			return err
		}
		want = max(want/2, size)
	}
	c := chunk{mem: mem, dirtyTo: addressOf(mem)}
	if !zeroed || a.checked {
		c.dirtyTo += uintptr(len(mem))
	}
	if a.checked {
		poison.Leave(mem)
	}
	a.chunks = append(a.chunks, c)
	at, _ := a.search(addressOf(mem))
	a.regions = slices.Insert(a.regions, at, regionOf(mem))
	a.reserved += len(mem)
	a.next = min(2*a.next, a.options.MaxChunkBytes)
	return nil
}

// search returns the index of the first region that ends after address, and
// whether it contains address.
func (a *Arena) search(address uintptr) (int, bool) {
	return slices.BinarySearchFunc(a.regions, address, func(r region, address uintptr) int {
		switch {
		case r.to <= address:
			return -1
		case r.from > address:
			return 1
		}
		return 0
	})
}

// holds reports whether address is in a chunk.
func (a *Arena) holds(address uintptr) bool {
	if uintptr(a.base) <= address && address < a.end {
		return true
	}
	_, ok := a.search(address)
	return ok
}

// giveBack frees the last chunk, a spare one, to the parent.
func (a *Arena) giveBack() {
	last := len(a.chunks) - 1
	mem := a.chunks[last].mem
	if a.checked {
		mustBePoison(mem)
	}
	i, _ := a.search(addressOf(mem))
	a.regions = slices.Delete(a.regions, i, i+1)
	a.chunks[last] = chunk{}
	a.chunks = a.chunks[:last]
	a.reserved -= len(mem)
	a.parent.Free(mem)
}
