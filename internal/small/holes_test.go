// Holes: the memory of free blocks inside spans.

package small

import (
	"errors"
	"testing"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/vm"
)

// Holes grow with the blocks that are freed, are lost where blocks are allocated, and are made
// again. Each page counts as given back once for each time that it becomes a hole.
func TestHolesFollowTheFreeBlocks(t *testing.T) {
	if !vm.HolesReadZero {
		t.Skip("this system has no holes")
	}
	p := newProcessor(t)
	const size = 3840 // a span has more than two batches
	class := ClassFor(size, 1)
	c := &p.m.central[class]
	var live [][]byte
	for range classes[class].blocks {
		live = append(live, p.alloc(t, size))
	}
	holes := 0
	for range 3 {
		for _, b := range live[:4] {
			p.free(b)
		}
		live = live[4:]
		purged := c.purged
		p.m.trim()
		if c.holes <= holes || c.purged-purged != uint64(c.holes-holes) {
			t.Errorf("holes of %d bytes, and %d after more was freed, %d given back", holes, c.holes, c.purged-purged)
		}
		holes = c.holes
	}
	purged := c.purged
	if p.m.trim(); c.purged != purged {
		t.Errorf("%d bytes given back for holes that are there", c.purged-purged)
	}
	p.alloc(t, size)
	batch := int(classes[class].batch) * size
	if lost := holes - c.holes; c.spans != 1 || lost < batch || lost >= batch+int(vm.PageBytes()) {
		t.Fatalf("%d spans, which lost %d bytes of holes to %d bytes of blocks", c.spans, lost, batch)
	}
	left := c.holes
	if p.m.trim(); c.holes <= left || c.purged-purged != uint64(c.holes-left) {
		t.Errorf("holes of %d bytes around the block, %d before, %d given back", c.holes, left, c.purged-purged)
	}
}

// Memory that the system refuses to take is no hole, and has not been given back.
func TestRefusedHoleIsNone(t *testing.T) {
	if !vm.HolesReadZero {
		t.Skip("this system has no holes")
	}
	p := newProcessor(t)
	const size = 30000
	c := &p.m.central[ClassFor(size, 1)]
	p.alloc(t, size)
	p.free(p.alloc(t, size))
	p.m.restore()
	calls := 0
	restore := vm.SetFault(func(op vm.Op) error {
		if op == vm.OpDecommit {
			calls++
			return errors.New("refused")
		}
		return nil
	})
	c.punch(&p.m.Heap)
	restore()
	if calls == 0 || c.holes != 0 || c.purged != 0 {
		t.Errorf("%d calls, holes of %d bytes, %d given back", calls, c.holes, c.purged)
	}
}

// Holes do not split huge pages.
func TestHolesSplitNoHugePages(t *testing.T) {
	m := newMachine(t, pages.Options{HugePages: true}, 1)
	b := m.processors[0].alloc(t, 4096)
	m.processors[0].alloc(t, 4096)
	m.processors[0].free(b)
	m.trim()
	if holes := m.central[ClassFor(4096, 1)].holes; holes != 0 {
		t.Errorf("holes of %d bytes", holes)
	}
}

// A punch visits the spans of all homes. It ends when a block has moved, and the class is not
// at rest then.
func TestPunchThatWasDisturbedIsNoRest(t *testing.T) {
	if !vm.HolesReadZero {
		t.Skip("this system has no holes")
	}
	for name, disturb := range map[string]func(c *central, last bool){
		"nothing":                func(*central, bool) {},
		"a block moved":          func(c *central, _ bool) { c.used = true },
		"a block moved, at last": func(c *central, last bool) { c.used = last },
	} {
		p := newHomes(t, 4)
		const size = 30000
		c := &p.m.central[ClassFor(size, 1)]
		first := map[*Span]bool{}
		var rest [][]byte
		for len(first) < 6 {
			workIn(len(first) / 3 * 2)
			b := p.alloc(t, size)
			if s := SpanAt(AddrOf(b)); first[s] {
				rest = append(rest, b)
			} else {
				first[s] = true
			}
		}
		for _, b := range rest {
			p.free(b)
		}
		p.m.restore()
		calls, spans := 0, c.partials()
		restore := vm.SetFault(func(op vm.Op) error { // c's lock is held
			if op == vm.OpDecommit {
				calls++
				disturb(c, calls == spans)
			}
			return nil
		})
		c.punch(&p.m.Heap)
		restore()
		if n := int(c.partial(0).n.Load()); calls == 0 || n == 0 || n == spans {
			t.Fatalf("%s: %d calls for %d spans, %d of home 0", name, calls, spans, n)
		}
		if name == "nothing" && calls < spans {
			t.Errorf("%d calls for %d spans", calls, spans)
		}
		if (calls == 1) != (name == "a block moved") {
			t.Errorf("%s: holes in %d spans of %d", name, calls, spans)
		}
		if c.rested != (name == "nothing") {
			t.Errorf("%s: at rest: %v", name, c.rested)
		}
	}
}
