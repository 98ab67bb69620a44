// Segments: how a page heap gets addresses.

package heap

import "github.com/freehold-go/freehold/internal/vm"

const maxSegmentBytes = 64 << 20

// grow takes a segment with room for n pages and returns the free run that it
// is part of. mu is held.
func (p *pageHeap) grow(n uintptr) (*span, error) {
	return p.addSegment(n, func(size uintptr) (uintptr, error) { return addresses.take(size, p.id) })
}

// growAt is grow for the addresses from at on, if nobody had them yet.
func (p *pageHeap) growAt(at, n uintptr) error {
	_, err := p.addSegment(n, func(size uintptr) (uintptr, error) { return at, addresses.takeAt(at, size, p.id) })
	return err
}

// addSegment adds a segment with room for n pages. Segments double, up to
// maxSegmentBytes.
func (p *pageHeap) addSegment(n uintptr, take func(size uintptr) (uintptr, error)) (*span, error) {
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
	// What the system kept of a closed heap's memory counts from here on.
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

// openSegment takes a segment and sets it up. Its memory is accessible where
// the system gives out memory at the first touch.
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
	vm.Name(addr, size, p.name)
	return addr, nil
}
