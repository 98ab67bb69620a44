// Metadata: a slab allocator for the heap's own objects, off-heap and away from the blocks.
//
// Objects are spans, statuses, magazines and caches. Objects of one size share slabs.
// An empty slab gives its memory back to the system.
//
//	slab (16 KiB, aligned)
//	+--------+----------+----------+-----+----------+-------+
//	| header | object 0 | object 1 | ... | object n | waste |
//	+--------+----------+----------+-----+----------+-------+
//
// A slab is aligned to its size, so masking an object's address gives its slab.
// Slabs are in segments of 1 MiB, which a heap takes from the metadata space that all
// heaps share, and returns when it is closed.

package pages

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/vm"
)

const (
	SlabBytes            = 16 << 10
	slabHeader           = 64
	ObjectUnit           = 64 // object sizes are multiples of it
	MaxObject            = 4 << 10
	metadataSegmentBytes = 1 << 20
	metadataRegionBytes  = 16 << 20 // the unit in which the metadata space reserves addresses
)

// slab is the header of a slab.
//
// Invariant: live + objects on free == carved.
type slab struct {
	free   uintptr // freed objects, linked through their first word
	Size   uintptr // of an object
	live   uintptr
	carved uintptr // objects ever handed out; the rest of the slab is untouched
	next   uintptr // on the list of slabs with room
	prev   uintptr
}

const _ = slabHeader - unsafe.Sizeof(slab{}) // the header fits

// metadata is a heap's slab allocator. The page heap's mu guards it.
type metadata struct {
	segments []uintptr
	unused   []uintptr                         // slabs without memory
	room     [MaxObject/ObjectUnit + 1]uintptr // slabs with room, by object size
	bytes    uintptr                           // in slabs with memory
	keep     bool                              // empty slabs stay
	kept     bool                              // since FreeEmptySlabs
}

func slabAt(addr uintptr) *slab   { return (*slab)(vm.Pointer(addr)) }
func (s *slab) addr() uintptr     { return uintptr(unsafe.Pointer(s)) }
func (s *slab) capacity() uintptr { return (SlabBytes - slabHeader) / s.Size }

// AllocObject is newObject for the layers above, which do not hold mu.
func (p *Heap) AllocObject(size uintptr) (uintptr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Closed.Load() {
		return 0, ErrClosed
	}
	return p.newObject(size)
}

// FreeObject is dropObject for the layers above, which do not hold mu.
func (p *Heap) FreeObject(addr, size uintptr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropObject(addr, size)
}

// newObject returns size bytes of metadata, all zero, at a multiple of ObjectUnit.
//
// Preconditions: size <= MaxObject; mu is held.
func (p *Heap) newObject(size uintptr) (uintptr, error) {
	size = vm.RoundUp(size, ObjectUnit)
	room := &p.metadata.room[size/ObjectUnit]
	if *room == 0 {
		s, err := p.newSlab(size)
		if err != nil {
			return 0, err
		}
		*room = s.addr()
	}
	s := slabAt(*room)
	addr := s.free
	if addr != 0 {
		s.free = *(*uintptr)(vm.Pointer(addr))
	} else {
		addr = s.addr() + slabHeader + s.carved*size
		s.carved++
	}
	if s.live++; s.live == s.capacity() {
		p.metadata.remove(s)
	}
	clear(unsafe.Slice((*byte)(vm.Pointer(addr)), size))
	return addr, nil
}

// dropObject frees an object. If its slab becomes empty but is the only one with room for the
// size, the slab stays, so that alternating allocs and frees make no system calls. So it does after
// KeepSlabs. mu is held.
func (p *Heap) dropObject(addr, size uintptr) {
	s := slabAt(addr &^ (SlabBytes - 1))
	if s.live == s.capacity() {
		p.metadata.add(s)
	}
	*(*uintptr)(vm.Pointer(addr)) = s.free
	s.free = addr
	if s.live--; s.live == 0 && (s.next != 0 || s.prev != 0) && !p.metadata.keep {
		p.freeSlab(s)
	}
}

// freeSlab gives an empty slab's memory back. If the system refuses, the slab stays, empty. mu
// is held.
func (p *Heap) freeSlab(s *slab) {
	size := s.Size
	p.metadata.remove(s)
	if _, _, err := Decommit(s.addr(), SlabBytes); err != nil {
		*s = slab{Size: size}
		p.metadata.add(s)
		return
	}
	p.uncharge(SlabBytes)
	p.metadata.bytes -= SlabBytes
	p.metadata.unused = append(p.metadata.unused, s.addr())
}

// KeepSlabs calls drain, and makes empty slabs stay meanwhile. It is for a drain after which the
// caches fill again at once. The next tick frees those that are still empty. Scavenging is held.
func (p *Heap) KeepSlabs(drain func()) {
	keep := func(keep bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.metadata.keep, p.metadata.kept = keep, true
	}
	keep(true)
	defer keep(false)
	drain()
	p.Wake()
}

// FreeEmptySlabs frees the empty slabs that dropObject kept, unless KeepSlabs makes them stay.
func (p *Heap) FreeEmptySlabs() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.metadata.keep {
		return
	}
	p.metadata.kept = false
	for _, at := range p.metadata.room {
		for at != 0 {
			s := slabAt(at)
			if at = s.next; s.live == 0 {
				p.freeSlab(s)
			}
		}
	}
}

// add puts s on its list of slabs with room.
func (m *metadata) add(s *slab) {
	room := &m.room[s.Size/ObjectUnit]
	s.prev, s.next = 0, *room
	if s.next != 0 {
		slabAt(s.next).prev = s.addr()
	}
	*room = s.addr()
}

// remove takes s off its list of slabs with room.
func (m *metadata) remove(s *slab) {
	if s.prev != 0 {
		slabAt(s.prev).next = s.next
	} else {
		m.room[s.Size/ObjectUnit] = s.next
	}
	if s.next != 0 {
		slabAt(s.next).prev = s.prev
	}
	s.next, s.prev = 0, 0
}

// newSlab charges for a slab for objects of the given size and returns it. mu is held.
func (p *Heap) newSlab(size uintptr) (*slab, error) {
	if len(p.metadata.unused) == 0 {
		segment, err := metadataAddresses.take()
		if err != nil {
			return nil, err
		}
		p.metadata.segments = append(p.metadata.segments, segment)
		for addr := segment + metadataSegmentBytes; addr > segment; addr -= SlabBytes {
			p.metadata.unused = append(p.metadata.unused, addr-SlabBytes)
		}
	}
	if err := p.charge(SlabBytes); err != nil {
		return nil, err
	}
	last := len(p.metadata.unused) - 1
	s := slabAt(p.metadata.unused[last])
	if err := Commit(s.addr(), SlabBytes); err != nil {
		p.uncharge(SlabBytes)
		return nil, err
	}
	p.metadata.unused = p.metadata.unused[:last]
	p.metadata.bytes += SlabBytes
	*s = slab{Size: size}
	return s, nil
}

// closeMetadata returns all metadata to the metadata space. mu is held.
func (p *Heap) closeMetadata() {
	for _, segment := range p.metadata.segments {
		metadataAddresses.give(segment)
	}
	p.uncharge(p.metadata.bytes)
	p.metadata = metadata{}
}

// metadataSpace holds the metadata segments that no heap uses. mu guards its fields.
type metadataSpace struct {
	mu       lockrank.Mutex[lockrank.Space]
	next     uintptr // [next, end) was never handed out
	end      uintptr
	returned []uintptr
}

var metadataAddresses metadataSpace

func (m *metadataSpace) take() (uintptr, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.returned); n > 0 {
		addr := m.returned[n-1]
		m.returned = m.returned[:n-1]
		return addr, nil
	}
	if m.next == m.end {
		addr, err := vm.Reserve(metadataRegionBytes, metadataSegmentBytes)
		if err != nil {
			return 0, err
		}
		m.next, m.end = addr, addr+metadataRegionBytes
	}
	m.next += metadataSegmentBytes
	return m.next - metadataSegmentBytes, nil
}

// give takes a segment back and revokes its memory for writes. If vm.HolesReadZero, it then
// reads zero: a misuse that races with Close and reads a stale span finds no block, and panics.
// On Windows the read faults. Returned neighbours share one mapping; Linux allows a process
// 65,530.
func (m *metadataSpace) give(addr uintptr) {
	if vm.RevokeWrites(addr, metadataSegmentBytes) != nil {
		Decommit(addr, metadataSegmentBytes) // refused: resident until it is used again
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.returned = append(m.returned, addr)
}
