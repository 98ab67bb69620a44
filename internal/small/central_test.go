// Central: the spans of a class.

package small

import (
	"testing"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/vm"
)

// Blocks are allocated from their span and return to it though there is no memory for a magazine.
// The span stays its home's.
func TestBlocksWithoutAMagazine(t *testing.T) {
	withHomes(t, 2)
	workIn(1)
	m := newMachine(t, pages.Options{MaxBytes: 4 << 20}, 1)
	p := m.processors[0]
	var live [][]byte
	for range 5000 {
		live = append(live, p.alloc(t, 24))
	}
	for i := 0; i < len(live); i += 2 {
		p.free(live[i])
	}
	m.trim()
	class, _ := entryOf(live[1])
	size := classes[class].magazineBytes()
	var objects []uintptr
	for {
		addr, err := m.below.AllocObject(size)
		if err == nil {
			objects = append(objects, addr)
		} else if _, err := m.below.AllocBlock(MaxSize+1, 8, false); err != nil {
			break
		}
	}
	for i := range 2500 {
		if _, err := p.tryAlloc(24); err != nil {
			t.Fatalf("block %d of 2500 that are free: %v", i, err)
		}
	}
	if s := SpanAt(AddrOf(live[1])); s.home != 1 {
		t.Errorf("the span of home 1 has become one of home %d", s.home)
	}
	n := m.Holding(class, 0)
	if p.free(live[1]); m.Holding(class, 0).Free != n.Free+1 || m.Holding(class, 0).Frees != n.Frees+1 {
		t.Errorf("%+v before a free, and %+v after it", n, m.Holding(class, 0))
	}
	if p.freeToDepot(live[1]) {
		t.Error("a block is freed twice")
	}
	for _, addr := range objects {
		m.below.FreeObject(addr, size)
	}
	m.check(t)
}

// An entry whose address and status are not of one block of the span changes nothing.
func TestEntriesOfNoBlockAreNotReturned(t *testing.T) {
	p := newProcessor(t)
	b, next := p.alloc(t, 3000), p.alloc(t, 3000)
	class, e := entryOf(b)
	s, blocks := SpanAt(e.Addr), classes[class].blocks
	c := &p.m.central[class]
	p.m.restore()
	*StatusAt(e.Status) = FreeDirty
	for _, e := range []Entry{
		s.entryOf(blocks),        // the waste behind the blocks
		{AddrOf(next), e.Status}, // another's status
	} {
		out := s.out
		c.mu.Lock()
		c.restoreTo(&p.m.Heap, s, []Entry{e})
		c.mu.Unlock()
		if s.out != out {
			t.Errorf("entry %+v was returned", e)
		}
	}
	*StatusAt(e.Status) = 3000
}

// A full span that gets its first block back is used next. One empty span stays, and is used last.
// Another one is freed.
func TestOrderOfSpans(t *testing.T) {
	p := newProcessor(t)
	const size = 4096
	c := &p.m.central[ClassFor(size, 1)]
	bySpan := map[*Span][][]byte{}
	var full []*Span
	for len(full) < 2 {
		b := p.alloc(t, size)
		s := SpanAt(AddrOf(b))
		if bySpan[s] = append(bySpan[s], b); uintptr(len(bySpan[s])) == classes[c.class].blocks {
			full = append(full, s)
		}
	}
	giveBack := func(b []byte) {
		_, e := entryOf(b)
		*StatusAt(e.Status) = FreeDirty
		p.m.restoreEntry(c.class, e)
	}
	a, b := full[0], full[1]
	giveBack(bySpan[a][0])
	giveBack(bySpan[b][0])
	if c.partial(0).Head != b.Addr() {
		t.Error("the span that got a block back last is not the first")
	}
	spans := c.spans
	for _, block := range bySpan[b][1:] {
		giveBack(block)
	}
	if c.spans != spans || c.partial(0).Tail != b.Addr() {
		t.Errorf("%d of %d spans are left; the empty one is the last: %v", c.spans, spans, c.partial(0).Tail == b.Addr())
	}
	for _, block := range bySpan[a][1:] {
		giveBack(block)
	}
	if c.spans != spans-1 {
		t.Errorf("%d of %d spans are left, of which two were empty", c.spans, spans)
	}
}

// The blocks of fresh memory are known to be zero. The waste behind the last block has a status
// too, which says free.
func TestStatusesOfAFreshSpan(t *testing.T) {
	p := newProcessor(t)
	for i := 1; i < NumClasses; i++ {
		class, e := entryOf(p.alloc(t, int(classes[i].size)))
		s := SpanAt(e.Addr)
		zero := 0
		for j := range classes[class].blocks {
			if *StatusAt(s.statusOf(j)) == FreeZero {
				zero++
			}
		}
		waste := *StatusAt(s.statusOf(classes[class].blocks))
		if blocks := int(classes[class].blocks); vm.HolesReadZero && zero != blocks-1 || waste != FreeDirty {
			t.Errorf("class of %d: %d of %d blocks are zero; behind them is %#x", s.Size, zero, blocks, waste)
		}
	}
}

// Open heaps have map IDs of their own, as far as there are enough. Pages without a span have no
// page word.
func TestMapIDs(t *testing.T) {
	seen := map[uint64]bool{}
	var all []*machine
	for i := range noMapID + 10 {
		m := newMachine(t, pages.Options{}, 1)
		if id := m.MapID(); seen[id] && id>>mapHeapShift != noMapID {
			t.Fatalf("two open heaps have the number %#x", id)
		}
		if i%50 == 10 && m.MapID() != all[i-5].MapID() { // the one that was closed
			t.Errorf("heap %d has the number %#x, want %#x", i, m.MapID(), all[i-5].MapID())
		}
		seen[m.MapID()] = true
		all = append(all, m)
		if i%50 == 9 {
			all[i-4].close()
			delete(seen, all[i-4].MapID())
		}
	}
	for _, m := range []*machine{all[0], all[len(all)-1]} {
		b := m.processors[0].alloc(t, 64)
		_, e := entryOf(b)
		if got := lookUp(e.Addr, m.MapID()); got != 0 && got != e.Status {
			t.Errorf("the map says %#x, want %#x", got, e.Status)
		}
		m.processors[0].free(b)
		if m.trim(); lookUp(e.Addr, m.MapID()) != 0 {
			t.Error("an entry is left of a span that was freed")
		}
	}
}
