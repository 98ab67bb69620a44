// Space: the addresses that all heaps share, and what is known of each page.
//
// Addresses are reserved in few large regions, 1 TiB where the system grants
// it: the first one when the first heap needs memory, so that an import takes
// none. They are never given back to the operating system: a Go variable that
// still holds an address which the Go heap has since taken over kills the process.
// Heaps take segments from a region and return them when they are closed:
//
//	region   |<-- used: segments handed out so far -->|<-- no access yet -->|
//	         | segment 4 MiB | segment 64 MiB | ...   |
//	pages    one word per page: the span that it belongs to, or 0
//	entries  one more, for Free: see pagemap.go; the first region has them
//	dirty    one bit per page: may hold something other than zeros
//	owners   one word per 4 MiB: the heap that has it, or 0
//	charges  one byte per 4 MiB: see maptables.go
//
// These tables are accessible for the used part, always.

package heap

import (
	"errors"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

const (
	pageShift = 13
	pageBytes = 1 << pageShift // the unit of runs; a multiple of most systems' page

	segmentBytes = 4 << 20 // the unit in which heaps take addresses

	wordBytes = unsafe.Sizeof(uintptr(0))
)

// region is one reservation. Its fields are fixed but for used, which only
// grows, under space.mu. Those of the first region are set before its used grows
// from 0: whoever finds an address below used may read them.
type region struct {
	base       uintptr
	size       uintptr
	used       atomic.Uintptr
	pages      uintptr
	mapEntries uintptr // 0 if the region has none
	dirty      bitmap
	owners     uintptr
	charges    uintptr
}

// space holds the regions. The first serves nearly every process alone and is
// found without a search; what the system refuses in one piece, or what
// outgrows it, is chained behind.
//
// mu guards used, chained and returned.
type space struct {
	first    region
	chained  atomic.Pointer[[]*region]
	mu       sync.Mutex
	returned []addrRange // segments of closed heaps: no access, all their words 0
}

// addrRange is a range of addresses.
type addrRange struct{ base, size uintptr }

var addresses space

var errTaken = errors.New("freehold: the addresses are taken")

// startFirst reserves the first region, if none is reserved yet. Where even the
// smallest is refused, a later call tries again. s.mu is held.
func (s *space) startFirst() {
	for size := vm.MaxReserve(); s.first.size == 0 && size >= segmentBytes; size /= 16 {
		s.first.reserve(size, true)
	}
}

// reserve makes r a region of size bytes, with page map entries or without.
func (r *region) reserve(size uintptr, tagged bool) error {
	tables := uintptr(0)
	table := func(bytes uintptr) (at uintptr) {
		at = tables
		tables += roundUp(bytes, vm.PageBytes())
		return at
	}
	pages, tags := table(size/pageBytes*wordBytes), uintptr(0)
	if tagged {
		tags = table(size / pageBytes * mapEntryBytes)
	}
	dirty, owners := table(size/pageBytes/8), table(size/segmentBytes*ownerBytes)
	charges := table(size / segmentBytes)
	tables = roundUp(tables, segmentBytes)
	// In one piece, so that nothing is taken for good where a part is refused;
	// the tables in front, where no overrun of a block can reach them.
	at, err := vm.Reserve(tables+size, segmentBytes)
	if err != nil {
		return err
	}
	r.pages, r.dirty, r.owners = at+pages, bitmap(at+dirty), at+owners
	r.charges = at + charges
	if tagged {
		r.mapEntries = at + tags
	}
	r.base, r.size = at+tables, size
	return nil
}

// open makes the next size bytes of r usable. Precondition: space.mu is held
// and r has that much left.
func (r *region) open(size uintptr) error {
	used := r.used.Load()
	commit := func(table, perSegment uintptr) error {
		os := vm.PageBytes()
		from := roundUp(used/segmentBytes*perSegment, os)
		to := roundUp((used+size)/segmentBytes*perSegment, os)
		if from == to {
			return nil
		}
		return vm.Commit(table+from, to-from)
	}
	const perSegment = segmentBytes / pageBytes
	if err := commit(r.pages, perSegment*wordBytes); err != nil {
		return err
	}
	if r.mapEntries != 0 {
		if err := commit(r.mapEntries, perSegment*mapEntryBytes); err != nil {
			return err
		}
	}
	if err := commit(uintptr(r.dirty), perSegment/8); err != nil {
		return err
	}
	if err := commit(r.owners, ownerBytes); err != nil {
		return err
	}
	if err := commit(r.charges, 1); err != nil {
		return err
	}
	r.used.Store(used + size)
	return nil
}

// holds reports whether addr is in the used part of r.
func (r *region) holds(addr uintptr) bool {
	used := r.used.Load()
	return used != 0 && addr-r.base < used
}

// page returns the word of the page that holds addr.
// Precondition: addr is in the used part of r.
func (r *region) page(addr uintptr) **span {
	return (**span)(vm.Pointer(r.pages + (addr-r.base)>>pageShift*wordBytes))
}

// pageIndex returns addr's page as a position in r.dirty.
func (r *region) pageIndex(addr uintptr) uintptr { return (addr - r.base) >> pageShift }

// owner returns the word of the segment that holds addr.
func (r *region) owner(addr uintptr) *uint32 {
	return (*uint32)(vm.Pointer(r.owners + (addr-r.base)/segmentBytes*ownerBytes))
}

// regionOf returns the region whose used part holds addr, or nil.
func (s *space) regionOf(addr uintptr) *region {
	if s.first.holds(addr) {
		return &s.first
	}
	if chained := s.chained.Load(); chained != nil {
		for _, r := range *chained {
			if r.holds(addr) {
				return r
			}
		}
	}
	return nil
}

// span returns the span that the page of addr belongs to. It is nil where no
// span is, for a page inside a large block or a free run, and beyond r.
func (r *region) span(addr uintptr) *span {
	if r.holds(addr) {
		return *r.page(addr)
	}
	return nil
}

// spanAt is span for any region.
func spanAt(addr uintptr) *span {
	if s := addresses.first.span(addr); s != nil {
		return s
	}
	return spanBeyond(addr)
}

// spanBeyond is span for any region but the first.
func spanBeyond(addr uintptr) *span {
	if chained := addresses.chained.Load(); chained != nil {
		for _, r := range *chained {
			if s := r.span(addr); s != nil {
				return s
			}
		}
	}
	return nil
}

// take hands a segment of size bytes, a multiple of segmentBytes, to a heap.
// Its memory is not accessible and its page words are 0.
func (s *space) take(size uintptr, owner uint32) (uintptr, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	addr, err := s.find(size)
	if err != nil {
		return 0, err
	}
	s.setOwner(addr, size, owner)
	return addr, nil
}

// takeAt is take for the addresses from at on, if they are the next in their
// region that nobody had.
func (s *space) takeAt(at, size uintptr, owner uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.regionOf(at - 1)
	if r == nil || r.base+r.used.Load() != at || r.size-r.used.Load() < size {
		return errTaken
	}
	if err := r.open(size); err != nil {
		return err
	}
	s.setOwner(at, size, owner)
	return nil
}

// find returns size bytes of returned or new addresses.
func (s *space) find(size uintptr) (uintptr, error) {
	best := -1
	for i, f := range s.returned {
		if f.size >= size && (best < 0 || f.size < s.returned[best].size) {
			best = i
		}
	}
	if best >= 0 {
		f := &s.returned[best]
		addr := f.base
		f.base += size
		if f.size -= size; f.size == 0 {
			s.returned = append(s.returned[:best], s.returned[best+1:]...)
		}
		return addr, nil
	}
	s.startFirst()
	r := &s.first
	if chained := s.chained.Load(); chained != nil {
		for i := 0; i < len(*chained) && r.size-r.used.Load() < size; i++ {
			r = (*chained)[i]
		}
	}
	if r.size-r.used.Load() < size {
		var err error
		if r, err = s.chain(size); err != nil {
			return 0, err
		}
	}
	addr := r.base + r.used.Load()
	if err := r.open(size); err != nil {
		return 0, err
	}
	return addr, nil
}

// chain reserves another region with room for size bytes.
func (s *space) chain(size uintptr) (*region, error) {
	r := &region{}
	var err error
	want := max(vm.MaxReserve(), segmentBytes, size)
	for {
		if err = r.reserve(want, false); err == nil {
			break
		}
		if want == size {
			return nil, err
		}
		want = max(roundUp(want/4, segmentBytes), size)
	}
	var chained []*region
	if old := s.chained.Load(); old != nil {
		chained = append(chained, *old...)
	}
	chained = append(chained, r)
	s.chained.Store(&chained)
	return r, nil
}

// give takes back a segment from a heap that is closing. Its memory is
// revoked and its page words cleared before any other heap can have it.
func (s *space) give(addr, size uintptr) {
	r := s.regionOf(addr)
	// If the system refuses, the memory stays resident until the segment is
	// used again; the dirty bits then still tell the truth.
	if vm.Revoke(addr, size) == nil {
		r.dirty.clearRange(r.pageIndex(addr), size/pageBytes)
	}
	zeroByDropping(uintptr(unsafe.Pointer(r.page(addr))), size/pageBytes*wordBytes, vm.PageBytes())
	if r.mapEntries != 0 {
		zeroByDropping(uintptr(unsafe.Pointer(r.mapEntry(addr-r.base))), size/pageBytes*mapEntryBytes, vm.PageBytes())
	}
	clearBytes(uintptr(unsafe.Pointer(r.charged(addr))), size/segmentBytes)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.setOwner(addr, size, 0)
	for i := 0; i < len(s.returned); {
		f := s.returned[i]
		if f.base+f.size != addr && addr+size != f.base || s.regionOf(f.base) != r {
			i++
			continue
		}
		addr, size = min(addr, f.base), size+f.size
		s.returned = append(s.returned[:i], s.returned[i+1:]...)
	}
	s.returned = append(s.returned, addrRange{addr, size})
}

func (s *space) setOwner(addr, size uintptr, owner uint32) {
	r := s.regionOf(addr)
	for a := addr; a < addr+size; a += segmentBytes {
		atomic.StoreUint32(r.owner(a), owner)
	}
}

// roundUp returns n rounded up to a multiple of unit, a power of two.
func roundUp(n, unit uintptr) uintptr { return (n + unit - 1) &^ (unit - 1) }
