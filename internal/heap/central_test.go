// Central: the spans of a class.

package heap

import (
	"testing"

	"github.com/freehold-go/freehold/internal/vm"
)

// A block that is free in its span is handed out though there is no memory for
// a magazine to carry others with it.
func TestFreeBlocksAreHandedOutWithoutAMagazine(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 4 << 20})
	var live [][]byte
	for range 5000 {
		live = append(live, alloc(t, h, 24))
	}
	for i := 0; i < len(live); i += 2 {
		h.Free(live[i])
	}
	h.Trim()
	class, _ := entryOf(live[1])
	size := classes[class].magazineBytes()
	var objects []uintptr
	for {
		addr, err := h.pages.AllocObject(size)
		if err == nil {
			objects = append(objects, addr)
		} else if b, err := h.Alloc(maxSmall+1, 8, false); err == nil {
			live = append(live, b)
		} else {
			break
		}
	}
	for i := range 2500 {
		b, err := h.Alloc(24, 8, false)
		if err != nil {
			t.Fatalf("block %d of 2500 that lie free: %v", i, err)
		}
		live = append(live, b)
	}
	for _, addr := range objects {
		h.pages.FreeObject(addr, size)
	}
	h.check(t)
}

// home returns a live block to its span.
func home(h *Heap, b []byte) (class uint8, e entry) {
	class, e = entryOf(b)
	c := &h.central[class]
	c.mu.Lock()
	defer c.mu.Unlock()
	*statusAt(e.status) = freeDirty
	c.returnBlocks(h, []entry{e})
	return class, e
}

// An entry whose address and status are not of one block of the span changes nothing.
func TestEntriesOfNoBlockAreNotReturned(t *testing.T) {
	h := newHeap(t, Options{})
	b, next := alloc(t, h, 3000), alloc(t, h, 3000)
	class, e := entryOf(b)
	s, blocks := spanAt(e.addr), classes[class].blocks
	c := &h.central[class]
	goHome(h)
	*statusAt(e.status) = freeDirty
	for _, e := range []entry{
		{s.Base + blocks*s.Size, s.statusOf(blocks)}, // the waste behind the blocks
		{addrOf(next), e.status},                     // another's status
	} {
		live := s.live
		c.mu.Lock()
		c.returnTo(h, s, []entry{e})
		c.mu.Unlock()
		if s.live != live {
			t.Errorf("entry %+v was returned", e)
		}
	}
	*statusAt(e.status) = 3000
	h.Free(b)
	h.Free(next)
}

// A full span that gets its first block back is used next. One empty span stays, and is
// used last. Another goes.
func TestOrderOfSpans(t *testing.T) {
	h := newHeap(t, Options{})
	const size = 4096
	c := &h.central[classFor(size, 1)]
	bySpan := map[*span][][]byte{}
	var a, b *span
	for n := 0; a == nil || b == nil; n++ {
		block := alloc(t, h, size)
		s := spanAt(addrOf(block))
		if bySpan[s] = append(bySpan[s], block); uintptr(len(bySpan[s])) < classes[c.class].blocks {
			continue
		}
		if a == nil {
			a = s
		} else {
			b = s
		}
	}
	home(h, bySpan[a][0])
	home(h, bySpan[b][0])
	if c.partial.Head != b.Addr() {
		t.Error("the span that got a block back last is not the first")
	}
	spans := c.spans
	for _, block := range bySpan[b][1:] {
		home(h, block)
	}
	if c.spans != spans || c.partial.Tail != b.Addr() {
		t.Errorf("%d of %d spans are left; the empty one is the last: %v", c.spans, spans, c.partial.Tail == b.Addr())
	}
	for _, block := range bySpan[a][1:] {
		home(h, block)
	}
	if c.spans != spans-1 {
		t.Errorf("%d of %d spans are left, of which two were empty", c.spans, spans)
	}
}

// The blocks of fresh memory are known to be zero. The waste behind the last block has a
// status too, which says free.
func TestStatusesOfAFreshSpan(t *testing.T) {
	h := newHeap(t, Options{})
	for i := 1; i < numClasses; i++ {
		class, e := entryOf(alloc(t, h, int(classes[i].size)))
		s := spanAt(e.addr)
		zero := 0
		for j := range classes[class].blocks {
			if *statusAt(s.statusOf(j)) == freeZero {
				zero++
			}
		}
		if blocks := int(classes[class].blocks); vm.HolesReadZero && zero != blocks-1 || *statusAt(s.statusOf(uintptr(blocks))) != freeDirty {
			t.Errorf("class of %d: %d of %d blocks are zero; behind them is %#x", s.Size, zero, blocks, *statusAt(s.statusOf(uintptr(blocks))))
		}
	}
}
