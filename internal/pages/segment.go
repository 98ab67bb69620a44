// Segments: how a page heap gets addresses.
//
// A segment is a range of addresses from the space that all heaps share. It is a
// multiple of SegmentBytes long and becomes a free run, joined with its free
// neighbours. A heap returns its segments when it is closed, not before.

package pages

import (
	"cmp"
	"slices"

	"github.com/freehold-go/freehold/internal/vm"
)

const maxSegmentBytes = 64 << 20

// grow takes a segment of at least n pages and returns the free run that contains
// it. mu is held.
func (p *Heap) grow(n uintptr) (*Span, error) {
	return p.addSegment(n, func(size uintptr) (uintptr, error) { return Addresses.take(size, p.ID) })
}

// growAt is grow for the addresses from at on. It fails unless they are the next unused ones of
// a region. extend uses it to grow a block in place. mu is held.
func (p *Heap) growAt(at, n uintptr) error {
	_, err := p.addSegment(n, func(size uintptr) (uintptr, error) { return at, Addresses.takeAt(at, size, p.ID) })
	return err
}

// addSegment adds a segment of at least n pages, which take provides. Each segment doubles the
// heap's addresses, up to maxSegmentBytes at a time. If that is refused, addSegment asks for just
// n pages. On an error nothing is added. mu is held.
func (p *Heap) addSegment(n uintptr, take func(size uintptr) (uintptr, error)) (*Span, error) {
	need := vm.RoundUp(n*PageBytes, SegmentBytes)
	size := max(need, min(p.total, maxSegmentBytes))
	s, err := p.newSpan()
	if err != nil {
		return nil, err
	}
	addr, err := p.openSegment(size, take)
	if err != nil && size > need {
		size = need
		addr, err = p.openSegment(size, take)
	}
	if err != nil {
		p.freeSpan(s)
		return nil, err
	}
	// Pages that the system did not take back from a closed heap are still dirty. This heap
	// pays for them.
	r := Addresses.RegionOf(addr)
	edges := [...]uintptr{addr, addr + size - PageBytes}
	tables := size/SegmentBytes*heldBytes + r.tableCost(edges[:]...)
	if err := p.charge(r.dirty.Count(r.pageIndex(addr), size/PageBytes)*PageBytes + tables); err != nil {
		Addresses.give(addr, size)
		p.freeSpan(s)
		return nil, err
	}
	p.noteTables(r, tables, edges[:]...)
	p.segments = append(p.segments, Range{addr, size})
	p.total += size
	s.Base, s.pages = addr, size/PageBytes
	p.insert(s)
	return s, nil
}

// openSegment takes a segment from the space and sets its mapping up. If the system
// provides memory at the first touch (vm.HolesReadZero), the whole segment becomes
// accessible here. Otherwise take commits each run.
func (p *Heap) openSegment(size uintptr, take func(size uintptr) (uintptr, error)) (uintptr, error) {
	addr, err := take(size)
	if err != nil {
		return 0, err
	}
	if vm.HolesReadZero {
		if err := vm.Commit(addr, size); err != nil {
			Addresses.give(addr, size)
			return 0, err
		}
	}
	if err := p.placement.apply(addr, size); err != nil {
		Addresses.give(addr, size)
		return 0, err
	}
	if p.HugePages {
		vm.Advise(addr, size, vm.HugePages) // best effort
	}
	vm.Name(addr, size, p.mapsName)
	return addr, nil
}

// joined returns ranges by address, with neighbours in one region merged.
func joined(in []Range) (out []Range) {
	in = slices.SortedFunc(slices.Values(in), func(a, b Range) int { return cmp.Compare(a.Base, b.Base) })
	for _, f := range in {
		if last := len(out) - 1; last >= 0 && out[last].Base+out[last].Size == f.Base && Addresses.RegionOf(out[last].Base) == Addresses.RegionOf(f.Base) {
			out[last].Size += f.Size
		} else {
			out = append(out, f)
		}
	}
	return out
}
