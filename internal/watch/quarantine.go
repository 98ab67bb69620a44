// Quarantine: freed blocks that are not reused yet, so that a write to them is found.
//
// Free checks the red zone, fills the block, and puts it into the quarantine of its heap, a queue
// of limited size. A block that leaves the queue is checked, and then freed. So a late write is
// found if it comes before the bytes that were freed after it exceed the quarantine. Each Alloc
// also checks the next few blocks of the queue, round and round, so most late writes are found
// sooner. The call that finds the write panics, with the stacks of the written block. It may be
// another goroutine's.
//
//	head --> checked | checked | cursor: checked next | ... <-- Free
//	  |
//	  +--> the engine, when the queue is full
//
// For the engine a block in quarantine is live. Stats counts it as cached.

package watch

import (
	"fmt"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/asan"
)

// cursor is the place in a quarantine where the next Alloc checks blocks. table.mu guards it.
type cursor struct {
	at     uintptr // record of the next block; 0 for the oldest
	credit uintptr // bytes that may be checked
}

// An Alloc of n bytes checks n + patrolBytes bytes in quarantine, or none if patrolBytes is 0, which
// tests set.
var patrolBytes = uintptr(1 << 10)

// quarantine frees the block of r, which take returned. A block that is larger than the
// quarantine is freed at once, and not filled.
func (h *Heap) quarantine(r *record) {
	whole, most := r.whole(), uintptr(settings.quarantine.Load())
	if uintptr(len(whole)) > most {
		locked(func() {
			h.unmark(r)
			r.forget()
		})
		forsake(whole)
		h.engine.Free(whole)
		return
	}
	forbid(whole)
	h.hold(r)
	h.release(most)
}

// hold puts the block of r into the quarantine. If h was closed since take, it forgets r.
func (h *Heap) hold(r *record) {
	table.mu.Lock()
	defer table.mu.Unlock()
	if h.closed {
		r.forget()
		return
	}
	r.end()
	h.freed.push(r)
}

// Release ends the quarantine, and reports whether that has freed any block. If a block was
// written, it panics after that.
func (h *Heap) Release() (any bool) { return h.release(0) }

// release frees the oldest blocks in quarantine until it holds most bytes or less.
func (h *Heap) release(most uintptr) (any bool) {
	late := ""
	for {
		whole, mistake := h.oldest(most)
		if whole == nil {
			break
		}
		if late == "" {
			late = mistake
		}
		h.engine.Free(whole)
		any = true
	}
	if late != "" {
		panic(late)
	}
	return any
}

// oldest takes the oldest block out of a quarantine that holds more than most bytes, and ends its
// watch. mistake describes a write to it, or is "".
func (h *Heap) oldest(most uintptr) (whole []byte, mistake string) {
	table.mu.Lock()
	defer table.mu.Unlock()
	if h.freed.bytes <= most {
		return nil, ""
	}
	return h.leave(recordAt(h.freed.head))
}

// leave takes r's block out of the quarantine and ends its watch. mistake is as for oldest. mu is
// held.
func (h *Heap) leave(r *record) (whole []byte, mistake string) {
	whole, mistake = r.whole(), h.writtenLate(r)
	if h.patrol.at == r.self() {
		h.patrol.at = r.after
	}
	h.freed.remove(r)
	h.engine.Unmark(whole)
	r.forget()
	return whole, mistake
}

// look checks some blocks in quarantine for an Alloc of size bytes. If one was written, look frees
// it and returns the message of a panic, else "".
func (h *Heap) look(size int) (late string) {
	whole, late := h.patrolled(uintptr(size))
	if whole != nil {
		h.engine.Free(whole)
	}
	return late
}

// patrolled moves the cursor past the blocks that the credit is enough for. It stops at a block
// that was written, and takes it out of the quarantine. A block that is larger than the credit
// waits for the credit of later calls, so a call takes time in proportion to its size.
func (h *Heap) patrolled(size uintptr) (whole []byte, mistake string) {
	if patrolBytes == 0 || asan.Enabled {
		return nil, ""
	}
	table.mu.Lock()
	defer table.mu.Unlock()
	p := &h.patrol
	p.credit = min(p.credit+size+patrolBytes, h.freed.bytes) // so no block is checked twice
	for p.credit > 0 {
		if p.at == 0 {
			p.at = h.freed.head
		}
		r := recordAt(p.at)
		n := r.size + uintptr(r.red)
		if n > p.credit {
			break
		}
		p.credit -= n
		if written(r.whole()) >= 0 {
			return h.leave(r)
		}
		p.at = r.after
	}
	return nil, ""
}

// EachFreed calls f with the address of each block in quarantine.
func (h *Heap) EachFreed(f func(addr uintptr)) {
	table.mu.Lock()
	defer table.mu.Unlock()
	h.freed.each(func(r *record) { f(r.addr) })
}

// WriteMistakes returns a message for each block that was written in quarantine, or behind its end
// while it is live. It changes nothing, so a later call that finds the write still panics.
func (h *Heap) WriteMistakes() (all []string) {
	table.mu.Lock() // so that no block goes to the engine meanwhile
	defer table.mu.Unlock()
	h.freed.each(func(r *record) {
		if mistake := h.writtenLate(r); mistake != "" {
			all = append(all, mistake)
		}
	})
	h.live.each(func(r *record) {
		if i := written(r.zone()); i >= 0 {
			all = append(all, h.writtenBehind(r, i+1))
		}
	})
	return all
}

// writtenLate is the message for a block that was written in quarantine, "" if it was not.
func (h *Heap) writtenLate(r *record) string {
	i := written(r.whole())
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("freehold: heap %q: byte %d of the block of %s at %#x was written after its Free%s", h.pages.Name, i, arg.Bytes(int(r.size)), r.addr, r.stacks())
}

// writtenBehind is the message for a block that was written n bytes behind its end.
func (h *Heap) writtenBehind(r *record, n int) string {
	return fmt.Sprintf("freehold: heap %q: the block of %s at %#x was written %s beyond its end%s", h.pages.Name, arg.Bytes(int(r.size)), r.addr, arg.Bytes(n), r.stacks())
}

// freedBefore panics for a block that is not live.
func (h *Heap) freedBefore(call string, r *record) {
	arg.Panicf(call, "%#x on heap %q: the block of %s was freed before (double free)%s", r.addr, h.pages.Name, arg.Bytes(int(r.size)), r.stacks())
}

// stacks returns the stacks of a block for a message.
func (r *record) stacks() string {
	return table.stacks.At("allocated", r.alloc) + table.stacks.At("freed", r.free)
}
