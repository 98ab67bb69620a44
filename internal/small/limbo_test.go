// Limbo: the statuses of freed spans, until a drain.

package small

import (
	"errors"
	"fmt"
	"testing"

	"github.com/freehold-go/freehold/internal/pages"
)

// freeAgain is the rest of a second Free that passed the check at the same moment as the first: it
// puts the entry into p's cache.
func (p *processor) freeAgain(t testing.TB, class uint8, e Entry) {
	t.Helper()
	d := p.m.depot(class, 0)
	d.mu.Lock()
	defer d.mu.Unlock()
	m, err := d.newMagazine(&p.m.Heap)
	if err != nil {
		t.Fatal(err)
	}
	m.push(e)
	d.keep(&p.m.Heap, p.cache.exchange(class, m))
}

// A block that two goroutines freed at once returned by its first entry, its span was freed, and
// its pages have another use. The second entry is still in a cache. Alloc detects it, and no
// other block is harmed.
func TestSecondEntryOutlivesTheSpan(t *testing.T) {
	for _, size := range []int{8, 64, 1000, 32 << 10} {
		t.Run(fmt.Sprintf("size=%d", size), func(t *testing.T) {
			p := newProcessor(t)
			b := p.alloc(t, size)
			class, e := entryOf(b)
			p.free(b)
			p.m.restore()
			if s := SpanAt(e.Addr); s != nil && s.Kind == pages.BlockRun {
				t.Fatal("the span is still there")
			}
			p.freeAgain(t, class, e)
			// These take the pages and the metadata that the span had.
			if _, err := p.m.below.AllocBlock(64<<10, 1, false); err != nil {
				t.Fatal(err)
			}
			var others [][]byte
			for range 300 {
				others = append(others, p.alloc(t, 24), p.alloc(t, 200))
			}
			if _, err := p.tryAlloc(size); !errors.Is(err, errFreedTwice) {
				t.Errorf("Alloc of the second entry: %v", err)
			}
			for range 300 {
				others = append(others, p.alloc(t, size))
			}
			for i, b := range others {
				fill(b, byte(i))
			}
			for i, b := range others {
				if !allSet(b, byte(i)) {
					t.Fatalf("block %d changed", i)
				}
				p.free(b)
			}
		})
	}
}

// The statuses of a freed span stay where they are while an entry may point to them: until a drain,
// and no longer.
func TestStatusesStayInLimboUntilADrain(t *testing.T) {
	p := newProcessor(t)
	var live [][]byte
	for range 5000 {
		live = append(live, p.alloc(t, 100))
	}
	for _, b := range live {
		p.free(b)
	}
	_, e := entryOf(live[0])
	p.m.restore()
	inLimbo := func() bool { return p.m.LimboBytes() > 0 && *StatusAt(e.Status) == InLimbo }
	if !inLimbo() {
		t.Fatalf("%d bytes in limbo, status %#x", p.m.LimboBytes(), *StatusAt(e.Status))
	}
	for range 20000 { // takes all metadata that is free
		p.alloc(t, 8)
	}
	if !inLimbo() {
		t.Errorf("the status of a freed span's block became %#x", *StatusAt(e.Status))
	}
	p.m.trim()
	if n := p.m.LimboBytes(); n != 0 {
		t.Errorf("%d bytes in limbo after a drain", n)
	}
}

// Limbo of up to minLimbo bytes needs no drain.
func TestSmallLimboNeedsNoDrain(t *testing.T) {
	m := newProcessor(t).m
	m.noteLimbo(minLimbo)
	if m.DrainIsDue() {
		t.Error("a drain is due at minLimbo")
	}
	m.noteLimbo(1)
	if !m.DrainIsDue() {
		t.Error("no drain is due above minLimbo")
	}
	m.noteLimbo(-minLimbo - 1)
}

// A closed heap has nothing to drain, and its depots lead to no memory.
func TestCloseForgetsLimboAndDepots(t *testing.T) {
	p := newProcessor(t)
	m, d := p.m, p.m.depot(class64, 0)
	for range 2 {
		full, err := d.newMagazine(&m.Heap)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.central[class64].fill(&m.Heap, full, 0, 0); err != nil {
			t.Fatal(err)
		}
		empty, err := d.newMagazine(&m.Heap)
		if err != nil {
			t.Fatal(err)
		}
		d.keep(&m.Heap, full)
		d.keep(&m.Heap, empty)
	}
	if stocked, empty := m.magazines(class64); stocked != 2 || empty == 0 || d.look() != 2 {
		t.Fatalf("%d magazines with blocks, %d without", stocked, empty)
	}
	m.noteLimbo(minLimbo + 1)
	m.central[class64].limbo = 1
	m.extra.Add(1)
	m.close()
	if n := m.LimboBytes(); n != 0 || m.DrainIsDue() || m.central[class64].limbo != 0 || m.extra.Load() != 0 {
		t.Errorf("%d bytes in limbo, a drain is due: %v, %d extra bytes", n, m.DrainIsDue(), m.extra.Load())
	}
	if l := m.central[class64].partial(0); l.List != (pages.List{}) || l.n.Load() != 0 {
		t.Errorf("the home has %d spans: %+v", l.n.Load(), l.List)
	}
	if d.stocked != (pile{}) || d.empty != (pile{}) || d.look() != 0 {
		t.Errorf("the depot has %+v and %+v, and says %d", d.stocked, d.empty, d.look())
	}
}
