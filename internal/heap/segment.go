// Segments: how a page heap gets addresses.
//
// A segment is a range of addresses from the space that all heaps share. It is a
// multiple of segmentBytes long and becomes a free run, joined with its free
// neighbours. A heap returns its segments when it is closed, not before.

package heap

import (
	"cmp"
	"slices"

	"github.com/freehold-go/freehold/internal/vm"
)

const maxSegmentBytes = 64 << 20

// grow takes a segment of at least n pages and returns the free run that contains
// it. mu is held.
func (p *pageHeap) grow(n uintptr) (*pspan, error) {
	return p.addSegment(n, func(size uintptr) (uintptr, error) { return addresses.take(size, p.id) })
}

// growAt is grow for the addresses from at on. It fails unless they are the next
// that no heap ever had. extend uses it to grow a block in place. mu is held.
func (p *pageHeap) growAt(at, n uintptr) error {
	_, err := p.addSegment(n, func(size uintptr) (uintptr, error) { return at, addresses.takeAt(at, size, p.id) })
	return err
}

// addSegment adds a segment of at least n pages, which take provides. The heap's
// addresses double with each segment, up to maxSegmentBytes at a time. If that much is
// refused, it takes just what n pages need. On an error nothing is added. mu is held.
func (p *pageHeap) addSegment(n uintptr, take func(size uintptr) (uintptr, error)) (*pspan, error) {
	need := roundUp(n*pageBytes, segmentBytes)
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
	// Pages that the system did not take back from a closed heap are still dirty. They
	// count from here on.
	r := addresses.regionOf(addr)
	edges := [...]uintptr{addr, addr + size - pageBytes}
	tables := size/segmentBytes*heldBytes + r.tableCost(edges[:]...)
	if err := p.charge(r.dirty.count(r.pageIndex(addr), size/pageBytes)*pageBytes + tables); err != nil {
		addresses.give(addr, size)
		p.freeSpan(s)
		return nil, err
	}
	p.noteTables(r, tables, edges[:]...)
	p.segments = append(p.segments, addrRange{addr, size})
	p.total += size
	s.base, s.pages = addr, size/pageBytes
	p.insert(s)
	return s, nil
}

// openSegment takes a segment from the space and sets its mapping up. If the system
// provides memory at the first touch (vm.HolesReadZero), the whole segment becomes
// accessible here. Otherwise take commits each run.
func (p *pageHeap) openSegment(size uintptr, take func(size uintptr) (uintptr, error)) (uintptr, error) {
	addr, err := take(size)
	if err != nil {
		return 0, err
	}
	if vm.HolesReadZero {
		if err := vm.Commit(addr, size); err != nil {
			addresses.give(addr, size)
			return 0, err
		}
	}
	if p.hugePages {
		vm.Advise(addr, size, vm.HugePages) // best effort
	}
	vm.Name(addr, size, p.mapsName)
	return addr, nil
}

// joined returns ranges in order of address, neighbours of one region as one.
func joined(in []addrRange) (out []addrRange) {
	in = slices.SortedFunc(slices.Values(in), func(a, b addrRange) int { return cmp.Compare(a.base, b.base) })
	for _, f := range in {
		if last := len(out) - 1; last >= 0 && out[last].base+out[last].size == f.base && addresses.regionOf(out[last].base) == addresses.regionOf(f.base) {
			out[last].size += f.size
		} else {
			out = append(out, f)
		}
	}
	return out
}
