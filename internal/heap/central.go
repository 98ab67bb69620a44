// Central: what the processors' caches draw on, one for each class.
//
//	cache <-- batches --> stock <-- batches --> spans <-- runs --> bins
//
// The stock is a stack of free blocks of any span, so that blocks which one
// processor frees and another needs do not pass through the spans. A refill
// from a span takes neighbours. Spans that are nearly full are used first: a
// span whose first block comes back goes to the front of the list.

package heap

import (
	"math/bits"
	"sync"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

// entry is a free block on its way.
type entry struct {
	addr  uintptr
	state uintptr // where the block's state stands; | zeroBlock if it holds zeros
}

const (
	zeroBlock  = 1
	entryBytes = unsafe.Sizeof(entry{})

	stockBatches = 4 // what a stock holds
)

// central is one class of one heap. mu guards it and the spans of its class.
//
// Invariants:
//   - spans with a block free in them are on partial, no others
//   - out == sum of live over the spans
type central struct {
	mu      sync.Mutex
	stock   uintptr // address of the stock, [stockBatches*batch]entry
	stocked uint32  // entries in it
	class   uint8
	used    bool // blocks moved since the last tick
	partial list
	spans   int
	empty   int // spans without a block in use
	out     int // blocks that are not free in their span
	holes   int // bytes of free blocks given back to the system
}

func entries(addr uintptr, n uint32) []entry {
	return unsafe.Slice((*entry)(vm.Pointer(addr)), n)
}

// take moves up to len(out) free blocks of the class to out. It returns at
// least one, or the error that kept it from making a span.
func (c *central) take(h *Heap, out []entry) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = true
	h.wake()
	if c.stocked > 0 {
		n := min(c.stocked, uint32(len(out)))
		c.stocked -= n
		return copy(out, entries(c.stock, c.stocked+n)[c.stocked:]), nil
	}
	n := 0
	for n < len(out) {
		if c.partial.head == 0 {
			if n > 0 {
				break
			}
			if err := c.grow(h); err != nil {
				return 0, err
			}
		}
		s := spanPtr(c.partial.head)
		n += c.carve(s, out[n:])
	}
	// The last entry is used first: let that be the lowest address.
	for i, j := 0, n-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return n, nil
}

// carve moves free blocks of s to out, from low addresses to high ones.
func (c *central) carve(s *span, out []entry) (n int) {
	if s.live == 0 {
		c.empty--
	}
	words := classes[c.class].freeWords()
	for w := uintptr(0); w < words && n < len(out); w++ {
		word := s.free.word(w)
		for *word != 0 && n < len(out) {
			i := w*64 + uintptr(bits.TrailingZeros64(*word))
			*word &= *word - 1
			out[n] = entry{s.base + i*s.size, s.states + i*2}
			if i >= uintptr(s.fresh) {
				s.fresh = uint32(i) + 1
				if s.zero {
					out[n].state |= zeroBlock
				}
			}
			n++
		}
	}
	s.live += uint32(n)
	c.out += n
	c.holes -= int(s.holes)
	s.holes, s.punched = 0, false
	if s.live == uint32(classes[c.class].blocks) {
		c.partial.remove(s)
	}
	return n
}

// give takes free blocks back from a cache.
func (c *central) give(h *Heap, in []entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = true
	h.wake()
	if room := stockBatches*classes[c.class].batch - c.stocked; uint32(len(in)) <= room && c.makeStock(h) {
		copy(entries(c.stock+uintptr(c.stocked)*entryBytes, room), in)
		c.stocked += uint32(len(in))
		return
	}
	c.settle(h, in)
}

// makeStock reports whether there is a stock.
func (c *central) makeStock(h *Heap) bool {
	if c.stock == 0 {
		h.mu.Lock()
		c.stock, _ = h.newObject(uintptr(stockBatches*classes[c.class].batch) * entryBytes)
		h.mu.Unlock()
	}
	return c.stock != 0
}

// settle returns blocks to their spans. Spans in which nothing is left are
// freed, but for one.
func (c *central) settle(h *Heap, in []entry) {
	for _, e := range in {
		s := spanAt(e.addr)
		if !s.awaits(e) {
			continue // freed by two goroutines at once: in use again, or back already
		}
		if s.live == uint32(classes[c.class].blocks) {
			c.partial.push(s)
		}
		s.free.set((e.state&^zeroBlock - s.states) / 2)
		s.live--
		s.punched = false
		c.out--
		if s.live > 0 {
			continue
		}
		if c.empty > 0 {
			c.release(h, s)
			continue
		}
		c.empty++
		c.partial.remove(s)
		c.partial.pushBack(s)
	}
}

// shrink returns the stock to its spans and frees all empty ones.
func (c *central) shrink(h *Heap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stocked > 0 {
		n := c.stocked
		c.stocked = 0
		c.settle(h, entries(c.stock, n))
	}
	if c.empty > 0 {
		for at := c.partial.head; at != 0; {
			s := spanPtr(at)
			at = s.next
			if s.live == 0 {
				c.empty--
				c.release(h, s)
			}
		}
	}
}

// grow adds a span.
func (c *central) grow(h *Heap) error {
	class := &classes[c.class]
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed.Load() {
		return errClosed
	}
	bits, err := h.newObject(class.bitsBytes())
	if err != nil {
		return err
	}
	s, zero, err := h.newRun(class.pages, pageBytes)
	if err != nil {
		h.freeObject(bits, class.bitsBytes())
		return err
	}
	s.kind, s.class, s.size, s.recip = blockRun, c.class, class.size, class.recip
	s.states, s.free = bits, bitmap(bits+class.statesBytes())
	s.free.setRange(0, class.blocks)
	h.occupy(s)
	s.zero = zero
	r := addresses.regionOf(s.base)
	for at := s.base; at < s.end(); at += pageBytes {
		*r.page(at) = s
	}
	c.partial.push(s)
	c.spans++
	c.empty++
	return nil
}

// release frees a span without a block in use.
func (c *central) release(h *Heap, s *span) {
	c.partial.remove(s)
	c.spans--
	c.holes -= int(s.holes)
	h.mu.Lock()
	defer h.mu.Unlock()
	r := addresses.regionOf(s.base)
	for at := s.base; at < s.end(); at += pageBytes {
		*r.page(at) = nil
	}
	h.freeObject(s.states, classes[c.class].bitsBytes())
	s.whole(freeRun)
	h.freeRun(s)
	h.wake()
}

// close forgets everything; the memory goes with the heap's.
func (c *central) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stock, c.stocked, c.partial = 0, 0, list{}
	c.spans, c.empty, c.out, c.holes = 0, 0, 0, 0
}
