package heap

import (
	"maps"
	"slices"
	"testing"
)

// check verifies the invariants that stand at runs, span, slab and central.
// Nobody else may use h.
func (h *Heap) check(t testing.TB) {
	t.Helper()
	h.pages.scavenging.Lock()
	defer h.pages.scavenging.Unlock()
	var dirtyBits, dirtyFree, oversizeDirty, tables, total uintptr
	live := map[uint8]int{}
	holes := map[uint8]int{}
	spans := map[uint8]int{}
	partial := map[uint8]int{}
	empty := map[uint8]int{}
	objects := map[uintptr]uintptr{} // of metadata, by size
	object := func(size uintptr) { objects[roundUp(size, objectUnit)]++ }
	var largeBlocks int
	var largeBytes uintptr

	for _, segment := range joined(h.pages.segments) {
		r := addresses.regionOf(segment.base)
		dirtyBits += r.dirty.count(r.pageIndex(segment.base), segment.size/pageBytes)
		total += segment.size
		for at := segment.base; at < segment.base+segment.size; at += segmentBytes {
			tables += heldBytes + uintptr(*r.charged(at))*tableBytes
		}
		previous := uint8(255)
		for at := segment.base; at < segment.base+segment.size; {
			s := *r.page(at)
			if s == nil {
				t.Fatalf("page %#x: no run begins here", at)
			}
			if s.base != at || s.pages == 0 || s.end() > segment.base+segment.size || s.owner != h.pages.id {
				t.Fatalf("page %#x: span %+v does not fit", at, *s)
			}
			object(spanBytes)
			dirty := r.dirty.count(r.pageIndex(at), s.pages)
			if r.tableCost(at, s.end()-pageBytes) != 0 {
				t.Fatalf("run %#x: its words are not charged", at)
			}
			for in := at + pageBytes; in < s.end(); in += pageBytes {
				want := (*span)(nil)
				if s.kind == blockRun || s.kind == freeRun && in == s.end()-pageBytes {
					want = s
				}
				if *r.page(in) != want {
					t.Fatalf("page %#x inside run %#x of kind %d: word %p", in, at, s.kind, *r.page(in))
				}
			}
			if s.kind != freeRun && dirty != s.pages {
				t.Fatalf("run %#x of kind %d: %d of %d pages are dirty", at, s.kind, dirty, s.pages)
			}
			switch s.kind {
			case freeRun:
				if previous == freeRun {
					t.Fatalf("free run %#x follows a free run", at)
				}
				if s.dirty != dirty || s.statuses != 0 {
					t.Fatalf("free run %#x: dirty is %d, %d bits are set", at, s.dirty, dirty)
				}
				if !h.pages.free.lists[bin(s.pages)].contains(s) {
					t.Fatalf("free run %#x of %d pages is not on its bin", at, s.pages)
				}
				dirtyFree += dirty
				if dirty >= oversizePages {
					oversizeDirty += dirty
				}
			case largeRun:
				largeBlocks++
				largeBytes += s.bytes()
			case blockRun:
				class := &classes[s.class]
				free := s.free.count(0, class.blocks)
				if free+uintptr(s.live) != class.blocks {
					t.Fatalf("span %#x: %d free + %d live of %d blocks", at, free, s.live, class.blocks)
				}
				for i := range class.blocks {
					st := *statusAt(s.statusOf(i))
					if st < freeZero && (s.free.has(i) || st == 0 || uintptr(st) > s.size) {
						t.Fatalf("span %#x block %d: free %v, state %d", at, i, s.free.has(i), st)
					}
				}
				if on := h.central[s.class].partial.contains(s); on != (free > 0) {
					t.Fatalf("span %#x with %d free blocks: on the list: %v", at, free, on)
				}
				if free > 0 {
					partial[s.class]++
				}
				for i := range class.blocks {
					want := s.statusOf(i)
					if r != &addresses.first || h.mapID>>mapHeapShift == noMapID {
						want = 0
					}
					begin, _ := lookUp(s.base+i*s.size, h.mapID)
					inside, _ := lookUp(s.base+i*s.size+s.size/2, h.mapID)
					if begin != want || inside != 0 {
						t.Fatalf("span %#x block %d: states at %#x and %#x, want %#x", at, i, begin, inside, want)
					}
				}
				object(class.bitsBytes())
				if s.live == 0 {
					empty[s.class]++
				}
				live[s.class] += int(s.live)
				holes[s.class] += int(s.holes)
				spans[s.class]++
			}
			previous = s.kind
			at = s.end()
		}
	}
	h.caches.Each(func(c *cache) { c.eachObject(object) })
	var slabs uintptr
	for _, size := range h.pages.metadata.room {
		for at := size; at != 0; at = slabAt(at).next {
			if s := slabAt(at); s.live >= s.capacity() || s.live > s.carved {
				t.Fatalf("slab %+v is on the list of slabs with room", *s)
			}
			slabs += slabBytes
		}
	}
	if slabs > h.pages.metadata.bytes {
		t.Fatalf("%d bytes in slabs with room, %d in all", slabs, h.pages.metadata.bytes)
	}
	if want := dirtyBits*pageBytes + h.pages.tables + h.pages.metadata.bytes; h.pages.committed != want {
		t.Fatalf("committed is %d, want %d", h.pages.committed, want)
	}
	if h.pages.dirty != dirtyFree || h.pages.leastDirty > h.pages.dirty {
		t.Fatalf("dirty is %d, want %d; leastDirty is %d", h.pages.dirty, dirtyFree, h.pages.leastDirty)
	}
	if o := &h.pages.oversize; o.dirty != oversizeDirty || o.least > o.dirty || o.back > o.sent || h.pages.purging != 0 {
		t.Fatalf("oversize is %+v, want dirty %d; purging is %d", [...]uintptr{o.dirty, o.least, o.sent, o.back}, oversizeDirty, h.pages.purging)
	}
	if h.pages.tables != tables {
		t.Fatalf("tables is %d, want %d", h.pages.tables, tables)
	}
	if h.pages.total != total || h.pages.large.blocks != largeBlocks || h.pages.large.bytes != largeBytes {
		t.Fatalf("total %d, want %d; large %+v, want %d, %d", h.pages.total, total, h.pages.large, largeBlocks, largeBytes)
	}
	if h.pages.maxBytes > 0 && h.pages.committed > h.pages.maxBytes {
		t.Fatalf("committed is %d, above the limit of %d", h.pages.committed, h.pages.maxBytes)
	}
	for i := range h.central {
		c := &h.central[i]
		class := uint8(i)
		stocked := 0
		for at := c.stock.head; at != 0; at = magazineAt(at).next {
			stocked += int(magazineAt(at).n)
			object(classes[i].magazineBytes())
		}
		for range c.emptyMagazines.n {
			object(classes[i].magazineBytes())
		}
		for at := c.limbo; at != 0; at = uintptr(*bitmap(at + classes[i].statusesBytes()).word(0)) {
			object(classes[i].bitsBytes())
		}
		if c.stock.n > maxStock || c.emptyMagazines.n > maxEmptyMagazines {
			t.Fatalf("class %d: %d magazines stocked and %d empty ones kept, want %d and %d at most", i, c.stock.n, c.emptyMagazines.n, maxStock, maxEmptyMagazines)
		}
		if stocked != c.stocked || c.stocked > c.out {
			t.Fatalf("class %d: %d blocks stocked, want %d, %d out", i, c.stocked, stocked, c.out)
		}
		if c.out != live[class] || c.holes != holes[class] || c.spans != spans[class] || c.empty != empty[class] || c.partial.length() != partial[class] {
			t.Fatalf("class %d: out %d, holes %d, spans %d, empty %d, partial %d; want %d, %d, %d, %d, %d",
				i, c.out, c.holes, c.spans, c.empty, c.partial.length(), live[class], holes[class], spans[class], empty[class], partial[class])
		}
	}
	if got := h.pages.metadata.objects(); !maps.Equal(got, objects) {
		t.Fatalf("objects of metadata by size: %v, of which %v are in use", got, objects)
	}
}

// eachObject calls f with the size of each object that c is made of.
func (c *cache) eachObject(f func(size uintptr)) {
	f(cacheBytes)
	for i := range classes {
		if c.loaded(uint8(i)) != nil {
			f(classes[i].magazineBytes())
		}
		if c.spares[i] != 0 {
			f(classes[i].magazineBytes())
		}
	}
}

// objects returns how many objects there are, by size.
func (m *metadata) objects() map[uintptr]uintptr {
	n := map[uintptr]uintptr{}
	for _, segment := range m.segments {
		for at := segment; at < segment+metadataSegmentBytes; at += slabBytes {
			if slices.Contains(m.unused, at) {
				continue
			}
			if s := slabAt(at); s.live > 0 {
				n[s.size] += s.live
			}
		}
	}
	return n
}

// joined returns ranges in order of address, neighbours as one.
func joined(in []addrRange) (out []addrRange) {
	for _, f := range in {
		i := 0
		for i < len(out) && out[i].base < f.base {
			i++
		}
		out = append(out[:i], append([]addrRange{f}, out[i:]...)...)
	}
	for i := 0; i+1 < len(out); {
		if out[i].base+out[i].size == out[i+1].base && addresses.regionOf(out[i].base) == addresses.regionOf(out[i+1].base) {
			out[i].size += out[i+1].size
			out = append(out[:i+1], out[i+2:]...)
			continue
		}
		i++
	}
	return out
}

func (l *list) contains(s *span) bool {
	for at := l.head; at != 0; at = spanPtr(at).next {
		if at == s.addr() {
			return true
		}
	}
	return false
}

func (l *list) length() (n int) {
	for at := l.head; at != 0; at = spanPtr(at).next {
		n++
	}
	return n
}
