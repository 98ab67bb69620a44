// Checked blocks: red zones, poison and quarantine, without a build of its own.
//
//	engine's block   | user's block | red zone, redBytes |
//
// This layer is above the engine, and in use if FREEHOLD_DEBUG asks for it, or in builds
// with -asan. That is decided when the program starts, so the engine knows little of it:
// a block of the engine's ends with a red zone, which holds the fill.
//
//	Alloc --> live --Free--> in quarantine --oldest--> the engine's Free
//
// Free checks the red zone, fills the block, and puts it into the quarantine of its heap, a
// queue of limited size. A block that leaves it is checked, and then freed. So a late write
// is found if it comes before as many bytes were freed as the quarantine holds. The call
// that finds it panics, whosever that is, with the stacks of the guilty block.
//
// For the engine a block in quarantine is live. Stats counts it as cached, and samples as
// free. What they count is the user's size.
//
// Guarded blocks are not checked: they have no red zone, as they end at an inaccessible
// page, and a quarantine of their own. Nor are heaps without samples, which are the
// bookkeeping of others.

package heap

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/asan"
	"github.com/freehold-go/freehold/internal/mode"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/stacks"
)

const (
	redBytes          = 32
	defaultQuarantine = 1 << 20 // bytes, red zones included
)

// quarantineBytes is how much each heap keeps in quarantine. 0 means that no block is
// checked.
var quarantineBytes = quarantineByMode()

func quarantineByMode() int {
	n, on := mode.Int("quarantine", 1, defaultQuarantine)
	if poisoned := mode.On("poison"); on {
		return n
	} else if poisoned || asan.Enabled || debugging {
		return defaultQuarantine
	}
	return 0
}

// checkedStacks are the stacks of allocations and frees.
var checkedStacks stacks.Table

// checks is what a heap knows of its blocks. No lock of the engine's is taken under mu.
type checks struct {
	mu     sync.Mutex
	blocks map[uintptr]checkedBlock // by address, live or not
	queue  []uintptr                // the quarantine, the oldest first
	held   int                      // bytes in it, red zones included
}

// checkedBlock is a block of the user's. It is not live from the beginning of a Free or a
// Resize on.
type checkedBlock struct {
	size      int
	live      bool
	allocated stacks.ID
	freed     stacks.ID // if not live
}

// newChecks returns nil if the blocks of a heap are not checked.
func newChecks(o Options) *checks {
	if quarantineBytes == 0 || o.Unsampled {
		return nil
	}
	return &checks{blocks: map[uintptr]checkedBlock{}}
}

func (c *checks) put(addr uintptr, k checkedBlock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blocks[addr] = k
}

func (c *checks) remove(addr uintptr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.blocks, addr)
}

func (c *checks) find(addr uintptr) (k checkedBlock, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, found = c.blocks[addr]
	return k, found
}

// whole returns the engine's block of a block at addr.
func (k checkedBlock) whole(addr uintptr) []byte { return block(addr, k.size+redBytes, false) }

// userBytes returns how many bytes of an engine's block are the user's.
func userBytes(size uintptr) uintptr {
	if quarantineBytes > 0 && size > redBytes {
		return size - redBytes
	}
	return size
}

// userBytes is userBytes of a block in s.
func (s *span) userBytes(size uintptr) uintptr {
	if s.Kind == pages.GuardRun {
		return size
	}
	return userBytes(size)
}

// checksBlock reports whether what is at addr is checked if it is a block of h.
func (h *Heap) checksBlock(addr uintptr) bool {
	if h.checks == nil {
		return false
	}
	s := spanAt(addr)
	return s == nil || s.Kind != pages.GuardRun
}

// allocChecked is Alloc.
func (h *Heap) allocChecked(size, align int, zero bool) ([]byte, error) {
	return h.withRedZone(size, func(size int) ([]byte, error) { return h.alloc(size, align, zero) })
}

// freeChecked is Free.
func (h *Heap) freeChecked(b []byte) {
	if len(b) == 0 || !h.checksBlock(addrOf(b)) {
		h.free(b)
		return
	}
	h.quarantine("Heap.Free", b)
}

// allocChecked is Alloc.
func (o *LocalCache) allocChecked(size, align int, zero bool) ([]byte, error) {
	return o.heap.withRedZone(size, func(size int) ([]byte, error) { return o.alloc(size, align, zero) })
}

// freeChecked is Free.
func (o *LocalCache) freeChecked(b []byte) {
	if o.heap == nil || len(b) == 0 || !o.heap.checksBlock(addrOf(b)) {
		o.free(b)
		return
	}
	o.mustBeOpen("Cache.Free")
	o.heap.quarantine("Cache.Free", b)
}

// withRedZone returns a block of size bytes of one that alloc returns. Before it is out of
// memory, it ends the quarantine.
func (h *Heap) withRedZone(size int, alloc func(size int) ([]byte, error)) ([]byte, error) {
	if h == nil || h.checks == nil || size <= 0 || size > maxSize-redBytes {
		return alloc(size)
	}
	b, err := alloc(size + redBytes)
	if err != nil && h.release(0) {
		h.refused.Add(^uint64(0)) // the second try counts
		b, err = alloc(size + redBytes)
	}
	if err != nil || len(b) == size { // guarded
		return b, err
	}
	return h.admit(b, size), nil
}

// admit makes the first size bytes of an engine's block the user's.
func (h *Heap) admit(whole []byte, size int) []byte {
	permit(whole[:size])
	forbid(whole[size:])
	h.checks.put(addrOf(whole), checkedBlock{size: size, live: true, allocated: checkedStacks.Capture(0)})
	return whole[:size:size]
}

// end makes b a block that is not live. It panics, in the name of call, unless b is exactly a
// live block with its red zone untouched.
func (h *Heap) end(call string, b []byte) checkedBlock {
	c, addr := h.checks, addrOf(b)
	freed := checkedStacks.Capture(0)
	c.mu.Lock()
	k, found := c.blocks[addr]
	exact := k.live && k.size == len(b)
	if exact {
		k.live, k.freed = false, freed
		c.blocks[addr] = k
	}
	c.mu.Unlock()
	switch {
	case exact:
	case found && !k.live:
		h.freedBefore(call, addr, k)
	default:
		h.misused(call, b)
	}
	if i := written(k.whole(addr)[k.size:]); i >= 0 {
		k.live, k.freed = true, stacks.Other
		c.put(addr, k)
		h.writtenBeyond(b, i+1, k.stacks())
	}
	return k
}

// writtenBeyond panics for a block that was written n bytes behind its end.
func (h *Heap) writtenBeyond(b []byte, n int, stacks string) {
	panic(h.writtenBehind(addrOf(b), len(b), n, stacks))
}

// writtenBehind is the message for a block that was written n bytes behind its end.
func (h *Heap) writtenBehind(addr uintptr, size, n int, stacks string) string {
	return fmt.Sprintf("freehold: heap %q: the block of %s at %#x was written %s beyond its end%s", h.pages.Name, arg.Bytes(size), addr, arg.Bytes(n), stacks)
}

// freedBefore panics for a block that is not live.
func (h *Heap) freedBefore(call string, addr uintptr, k checkedBlock) {
	arg.Panicf(call, "%#x on heap %q: the block of %s was freed before (double free)%s", addr, h.pages.Name, arg.Bytes(k.size), k.stacks())
}

// stacks returns the stacks of a block for a message.
func (k checkedBlock) stacks() string {
	return checkedStacks.Text("allocated at:", k.allocated) + checkedStacks.Text("freed at:", k.freed)
}

// resizeChecked is resize.
func (h *Heap) resizeChecked(call string, b []byte, size int) ([]byte, bool) {
	k, addr := h.end(call, b), addrOf(b)
	h.checks.remove(addr)
	whole := k.whole(addr)
	leave(whole) // what the engine frees may be another's before it returns
	if size <= maxSize-redBytes {
		if r, ok := h.resizeSampled(call, whole, size+redBytes); ok {
			return h.admit(r, size), true
		}
	}
	permit(b)
	k.live, k.freed = true, stacks.Other
	h.checks.put(addr, k)
	return nil, false
}

// checkedAt returns the live block that begins at p.
func (h *Heap) checkedAt(call string, p unsafe.Pointer) []byte {
	k, found := h.checks.find(uintptr(p))
	if !found {
		h.misused(call, unsafe.Slice((*byte)(p), 1))
	}
	if !k.live {
		h.freedBefore(call, uintptr(p), k)
	}
	return unsafe.Slice((*byte)(p), k.size)
}
