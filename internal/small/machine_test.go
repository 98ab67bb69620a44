// Machine: small blocks without the rest of a heap, for the tests.

package small

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/poison"
	"github.com/freehold-go/freehold/internal/vm"
)

// machine is a heap of small blocks with simulated processors. One goroutine uses a processor at a
// time.
type machine struct {
	Heap
	below      pages.Heap
	processors []*processor
}

// processor is a slot of package heap with its cache.
type processor struct {
	m     *machine
	cache *Magazines
	slot  int
}

func newMachine(t testing.TB, o pages.Options, processors int) *machine {
	o.Decay = -1
	m := &machine{}
	m.below.Init(o, func() {})
	m.Init(&m.below)
	for i := range processors {
		p := &processor{m, new(Magazines), i}
		p.cache.Clear()
		m.processors = append(m.processors, p)
	}
	t.Cleanup(func() {
		if m.below.Closed.Load() {
			return
		}
		if !t.Failed() {
			m.check(t)
		}
		m.close()
	})
	return m
}

// newProcessor returns the only processor of a machine.
func newProcessor(t testing.TB) *processor { return newMachine(t, pages.Options{}, 1).processors[0] }

func (m *machine) close() {
	m.below.Scavenging.Lock()
	defer m.below.Scavenging.Unlock()
	m.below.Closed.Store(true)
	m.Close()
	m.below.Close()
	m.ReleaseMapID()
}

// check verifies the invariants of m. No other goroutine uses m.
func (m *machine) check(t testing.TB) {
	t.Helper()
	var n pages.Tally
	for _, p := range m.processors {
		if err := p.cache.Verify(n.Object); err != nil {
			t.Fatal(err)
		}
	}
	v := m.Verify(n.Object, func(uintptr) uintptr { return 0 })
	m.below.Scavenging.Lock()
	defer m.below.Scavenging.Unlock()
	err := m.below.Verify(&n, pages.Range{}, func(s *pages.Span, dirty uintptr) error {
		if s.Kind != pages.BlockRun {
			return nil
		}
		return v.Run(SpanOf(s))
	})
	if err == nil {
		err = v.End()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// flush returns the blocks of all caches to their spans.
func (m *machine) flush() {
	for _, p := range m.processors {
		m.Flush(p.cache)
	}
}

// restore is a drain that leaves limbo alone.
func (m *machine) restore() {
	m.flush()
	for i := range m.central {
		m.shrink(uint8(i), false)
	}
	m.below.FreeEmptySlabs()
}

// trim does to small blocks what Trim of package heap does.
func (m *machine) trim() {
	m.flush()
	m.Shrink()
	m.below.FreeEmptySlabs()
	m.below.Scavenging.Lock()
	defer m.below.Scavenging.Unlock()
	m.Punch()
}

// live returns the number of live blocks of a class.
func (m *machine) live(class uint8) int {
	var cached [NumClasses]int
	for _, p := range m.processors {
		p.cache.Count(&cached)
	}
	return m.Holding(class, cached[class]).Live
}

var errFreedTwice = errors.New("freed by two goroutines at once")

// tryAlloc allocates size bytes as package heap does.
func (p *processor) tryAlloc(size int) ([]byte, error) {
	class := ClassFor(size, 1)
	if e, was := p.cache.Peek(class); IsFree(was) {
		return unsafe.Slice((*byte)(p.cache.Pop(class, e, size)), size), nil
	}
	addr, was := p.cache.Alloc(class, size)
	if addr == 0 {
		var err error
		if addr, was, err = p.m.AllocFromDepot(p, class, p.slot, size); err != nil {
			return nil, err
		}
	}
	if !IsFree(was) {
		return nil, errFreedTwice
	}
	return unsafe.Slice((*byte)(vm.Pointer(addr)), size), nil
}

func (p *processor) alloc(t testing.TB, size int) []byte {
	t.Helper()
	b, err := p.tryAlloc(size)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// free frees b as package heap does. It reports false if b is not a live block.
func (p *processor) free(b []byte) bool {
	if word, off, ok := PageWord(AddrOf(b), p.m.mapID); ok {
		st, class, ok := StatusIn(word, off)
		if top, room := p.cache.Room(class); ok && room && int(*StatusAt(st)) == len(b) {
			p.cache.Push(class, top, AddrOf(b), st)
			return true
		}
	}
	class := SpanAt(AddrOf(b)).class
	if e := p.m.LiveEntry(class, b); e.Addr != 0 && p.cache.Free(class, e) {
		return true
	}
	return p.freeToDepot(b)
}

func (p *processor) freeToDepot(b []byte) bool {
	return p.m.FreeToDepot(p, SpanAt(AddrOf(b)).class, p.slot, b)
}

// A processor implements Slots. Its goroutine always has the slot.
func (p *processor) Hold() (int, *Magazines) { return p.slot, p.cache }
func (p *processor) Leave(int)               {}

// entryOf returns the class and the entry of a block.
func entryOf(b []byte) (class uint8, e Entry) {
	s := SpanAt(AddrOf(b))
	return s.class, s.entryOf(s.index(AddrOf(b)))
}

// restoreEntry returns a block to its span by an entry that no cache has.
func (m *machine) restoreEntry(class uint8, e Entry) {
	c := &m.central[class]
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restoreAll(&m.Heap, []Entry{e})
}

var fill = poison.FillBytes

func allSet(b []byte, v byte) bool { return poison.Other(b, v) < 0 }
