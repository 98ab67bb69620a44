// Quarantine: freed blocks that nobody gets yet, so that a use of them is found.

package heap

import (
	"fmt"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/pages"
)

// quarantine is Free of a checked block in the name of call. A block that is larger than the
// quarantine does not get there, nor the fill.
func (h *Heap) quarantine(call string, b []byte) {
	c, addr := h.checks, addrOf(b)
	whole := h.end(call, b).whole(addr)
	if len(whole) > quarantineBytes {
		c.remove(addr)
		leave(whole)
		h.free(whole)
		return
	}
	h.freeSample(spanAt(addr), whole)
	forbid(whole)
	c.mu.Lock()
	c.queue = append(c.queue, addr)
	c.held += len(whole)
	c.mu.Unlock()
	h.release(quarantineBytes)
}

// WriteMistakes returns a message for each block of the open heaps that was written where
// nobody may: in quarantine, or behind its end while it is live. It changes nothing, so the
// call that would have found the write still panics.
func WriteMistakes() (all []string) {
	EachOpen(func(h *Heap) {
		if h.checks != nil {
			all = append(all, h.writeMistakes()...)
		}
	})
	return all
}

func (h *Heap) writeMistakes() (all []string) {
	c := h.checks
	c.mu.Lock() // so no block is the engine's meanwhile
	defer c.mu.Unlock()
	for _, addr := range c.queue {
		k := c.blocks[addr]
		if i := written(k.whole(addr)); i >= 0 {
			all = append(all, h.writtenLate(addr, k, i))
		}
	}
	for addr, k := range c.blocks {
		if k.live {
			if i := written(k.whole(addr)[k.size:]); i >= 0 {
				all = append(all, h.writtenBehind(addr, k.size, i+1, k.stacks()))
			}
		}
	}
	return all
}

// writtenLate is the message for byte i of a block that was written in quarantine.
func (h *Heap) writtenLate(addr uintptr, k checkedBlock, i int) string {
	return fmt.Sprintf("freehold: heap %q: byte %d of the block of %s at %#x was written after its Free%s", h.pages.Name, i, arg.Bytes(k.size), addr, k.stacks())
}

// release frees the oldest blocks in quarantine until it holds at most that many bytes, and
// reports whether it has freed any. If one was written, it panics in the end.
func (h *Heap) release(most int) (any bool) {
	late := ""
	for {
		addr, k := h.checks.oldest(most)
		if addr == 0 {
			break
		}
		whole := k.whole(addr)
		if i := written(whole); i >= 0 && late == "" {
			late = h.writtenLate(addr, k, i)
		}
		h.free(whole)
		any = true
	}
	if late != "" {
		panic(late)
	}
	return any
}

// oldest takes the oldest block out of a quarantine that holds more than most bytes.
func (c *checks) oldest(most int) (addr uintptr, k checkedBlock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held <= most {
		return 0, checkedBlock{}
	}
	addr = c.queue[0]
	k = c.blocks[addr]
	c.queue = c.queue[1:]
	c.held -= k.size + redBytes
	delete(c.blocks, addr)
	return addr, k
}

// endChecks ends the quarantine of a heap that is being closed, and with it all blocks. It
// returns what there is to panic with once the heap is closed, or nil.
func (h *Heap) endChecks() (late any) {
	if h.checks == nil {
		return nil
	}
	defer func() {
		late = recover()
		h.checks.mu.Lock()
		defer h.checks.mu.Unlock()
		clear(h.checks.blocks)
		for _, s := range h.pages.AllSegments() {
			permit(block(s.Base, int(s.Size), false))
		}
	}()
	h.release(0)
	return nil
}

// countQuarantine makes the figures of blocks in quarantine those of free ones.
func (h *Heap) countQuarantine(st *Stats) {
	var n [numClasses]int
	h.checks.mu.Lock()
	defer h.checks.mu.Unlock()
	for _, addr := range h.checks.queue {
		s := spanAt(addr)
		st.Blocks--
		if s.Kind == pages.BlockRun {
			st.Allocated -= int(s.Size)
			n[s.class]++
			continue
		}
		st.Allocated -= int(s.Bytes())
		st.LargeBlocks--
		st.LargeBytes -= int(s.Bytes())
	}
	for i := range st.Classes {
		c := &st.Classes[i]
		in := n[classOf[c.Size/8]]
		c.Blocks -= in
		c.Cached += in
	}
}
