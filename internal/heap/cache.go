// Caches: each processor's stock of free blocks.
//
// A cache has a slot for each class, a stack of free blocks. Whoever holds the
// cache, by pin, has it to itself: pin.go and pin_portable.go say how. While it
// is held nothing may block, allocate, panic or touch memory that may fault.
//
// The slow path is a loop of enter, try, leave: after a miss the goroutine may
// be on another processor.

package heap

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

// slot is a cache's stack of free blocks of one class.
type slot struct {
	n       uint32  // entries on the stack
	cap     uint32  // its room: two batches, or 0 while there is no stack
	entries uintptr // address of the stack
}

// cache is one processor's stock. It is off-heap.
type cache struct {
	guard
	slots [numClasses]slot
}

const cacheSize = unsafe.Sizeof(cache{})

func cacheAt(addr uintptr) *cache { return (*cache)(vm.Pointer(addr)) }

func (s *slot) entry(i uint32) *entry {
	return (*entry)(vm.Pointer(s.entries + uintptr(i)*entryBytes))
}

// allocSmall is Alloc where the cache has no block to give.
func (h *Heap) allocSmall(class uint8, size, align int, zero bool) ([]byte, error) {
	if h.wholePages {
		return h.allocLarge(size, align, zero)
	}
	h.dropLive(class)
	e, err := h.refill(class)
	if err != nil {
		return nil, h.refused(err)
	}
	st := state(e.state &^ zeroBlock)
	if *st != 0 {
		freedTwice(e.addr)
	}
	*st = uint16(size)
	b := unsafe.Slice((*byte)(vm.Pointer(e.addr)), size)
	if zero && e.state&zeroBlock == 0 {
		clear(b)
	}
	return b, nil
}

// dropLive panics if the cache's next block is one that has been handed out
// already; from then on that block is nobody's but its owner's.
func (h *Heap) dropLive(class uint8) {
	twice := uintptr(0)
	c := h.cacheOf(h.enter())
	if c != nil {
		if s := &c.slots[class]; s.n > 0 {
			if e := s.entry(s.n - 1); *state(e.state &^ zeroBlock) != 0 {
				s.n--
				twice = e.addr
			}
		}
	}
	h.leave(c)
	if twice != 0 {
		freedTwice(twice)
	}
}

// freeSlow is Free where the cache has no room, or b is no small block.
func (h *Heap) freeSlow(b []byte) {
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	s := spanAt(addr)
	if s == nil || s.kind != blockRun || !s.holds(h, addr, b) {
		h.freeLarge(b)
		return
	}
	st := s.states + s.index(addr)*2
	*state(st) = 0
	h.store(s.class, []entry{{addr, st}})
}

// refill returns a free block of a class of which the cache has none, and puts
// more into the cache.
func (h *Heap) refill(class uint8) (entry, error) {
	var batch [maxBatch]entry
	n := 0
	err := h.withReclaim(func() (err error) {
		n, err = h.central[class].take(h, batch[:classes[class].batch])
		return err
	})
	if err != nil {
		return entry{}, err
	}
	h.store(class, batch[:n-1])
	return batch[n-1], nil
}

// store puts free blocks into the cache of the processor it runs on, and what
// has been there longest into the central to make room.
func (h *Heap) store(class uint8, in []entry) {
	if len(in) == 0 {
		return
	}
	// What a processor took stays with it from the first block on: neighbours
	// in two caches would share the cache lines that their states stand on.
	if !h.keep(class, in) && (!h.prepare(class) || !h.keep(class, in)) {
		h.central[class].give(h, in)
	}
}

// keep is store if there is a cache and it has a stack for the class.
func (h *Heap) keep(class uint8, in []entry) bool {
	var oldest [maxBatch]entry
	moved, kept := 0, false
	c := h.cacheOf(h.enter())
	if c != nil {
		s := &c.slots[class]
		if s.cap > 0 {
			if s.n+uint32(len(in)) > s.cap {
				moved = s.moveOldest(oldest[:classes[class].batch])
			}
			copy(entries(s.entries, s.cap)[s.n:], in)
			s.n += uint32(len(in))
			kept = true
		}
	}
	h.leave(c)
	if moved > 0 {
		h.central[class].give(h, oldest[:moved])
	}
	return kept
}

// moveOldest moves the entries at the bottom of the stack to out.
func (s *slot) moveOldest(out []entry) int {
	stack := entries(s.entries, s.n)
	n := copy(out, stack)
	copy(stack, stack[n:])
	s.n -= uint32(n)
	return n
}

// prepare gives the processor that it runs on a cache, and the cache a stack
// for the class, where they are missing. It reports whether there was memory;
// without, the heap works on, slowly.
func (h *Heap) prepare(class uint8) bool {
	capacity := 2 * classes[class].batch
	stack := h.newStack(capacity)
	if stack == 0 {
		return false
	}
	c := h.cacheOf(h.enter())
	if c != nil && c.slots[class].cap == 0 {
		c.slots[class] = slot{cap: capacity, entries: stack}
		stack = 0
	}
	h.leave(c)
	if stack != 0 {
		h.mu.Lock()
		h.freeObject(stack, uintptr(capacity)*entryBytes)
		h.mu.Unlock()
	}
	return true
}

// newStack returns memory for a slot, 0 if there is none or no cache for it.
func (h *Heap) newStack(capacity uint32) uintptr {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed.Load() || !h.addCache() {
		return 0
	}
	stack, _ := h.newObject(uintptr(capacity) * entryBytes)
	return stack
}

// empty returns all blocks in a cache.
func (h *Heap) empty(c *cache) {
	for i := range c.slots {
		if s := &c.slots[i]; s.n > 0 {
			h.central[i].give(h, entries(s.entries, s.n))
			s.n = 0
		}
	}
}

// freeCache frees the memory of an empty cache that nobody can reach.
func (h *Heap) freeCache(c *cache) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range c.slots {
		if s := &c.slots[i]; s.cap > 0 {
			h.freeObject(s.entries, uintptr(s.cap)*entryBytes)
		}
	}
	h.freeObject(uintptr(unsafe.Pointer(c)), cacheSize)
}
