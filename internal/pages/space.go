// Space: the address space that all heaps share, and its tables.
//
// Addresses are reserved in few large regions, of 1 TiB if the system permits. The first heap
// that needs memory reserves the first region, so an import reserves none. Addresses never go
// back to the system: a Go variable that still held one would kill the process once Go's own
// heap grew there. Heaps take segments from a region and return them when they are closed:
//
//	region     |<-- used: segments handed out so far -->|<-- not accessible -->|
//	           | segment 4 MiB | segment 64 MiB | ...   |
//	pages      a word per page: its span, or nil; see pagemap.go
//	pageWords  another, for Free; in the first region only
//	dirty      a bit per page: it may hold memory and need not read zero
//	owners     a word per 4 MiB: the ID of the heap that has taken it, or 0
//	charges    a byte per 4 MiB: see pagemap.go
//
// The words of used addresses are always accessible. So readers without a lock may look
// up any address below used.

package pages

import (
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/vm"
)

const (
	PageShift = 13
	PageBytes = 1 << PageShift // the unit of runs; a multiple of most systems' page

	SegmentBytes = 4 << 20 // the unit in which heaps take addresses

	// goBytes is the part of the process's limit on addresses that is left for Go's heap. Go
	// takes addresses 64 MiB at a time, and ends the process if there are none.
	goBytes = 128 << 20

	WordBytes = unsafe.Sizeof(uintptr(0))
)

// region is one reservation. All fields but used are fixed. used grows under Space.mu and is
// read without it. The other fields are set before used first grows, and used is atomic, so a
// reader that finds an address below used sees them.
type region struct {
	Base      uintptr
	Size      uintptr
	used      atomic.Uintptr
	pages     uintptr
	pageWords uintptr // 0 if the region has none
	dirty     Bitmap
	owners    uintptr
	charges   uintptr
}

// A Space is the set of regions. The first suffices for nearly every process and needs no
// search. More regions are chained when it is full, or if the system permits only small
// reservations.
//
// mu guards returned, and changes of used and chained.
type Space struct {
	First    region
	chained  atomic.Pointer[[]*region]
	mu       lockrank.Mutex[lockrank.Space]
	returned []Range // segments of closed heaps, inaccessible; their words are 0
}

// Range is a range of addresses.
type Range struct{ Base, Size uintptr }

// Addresses is the one Space, shared by all heaps. The assembly of package heap knows it by the
// name freehold·addresses, since it cannot spell this package's path.
//
//go:linkname Addresses freehold.addresses
var Addresses Space

// For the assembly.
const (
	FirstBase  = unsafe.Offsetof(Addresses.First) + unsafe.Offsetof(Addresses.First.Base)
	FirstUsed  = unsafe.Offsetof(Addresses.First) + unsafe.Offsetof(Addresses.First.used)
	FirstPages = unsafe.Offsetof(Addresses.First) + unsafe.Offsetof(Addresses.First.pages)
	FirstWords = unsafe.Offsetof(Addresses.First) + unsafe.Offsetof(Addresses.First.pageWords)
)

var (
	errTaken = errors.New("freehold: the addresses are taken")
	errForGo = errors.New("freehold: the addresses left under the limit are for Go's heap")
)

// startFirst reserves the first region, unless it is reserved already. If the system
// refuses even the smallest size, a later call tries again. s.mu is held.
func (s *Space) startFirst() {
	for size := vm.MaxReserve(); s.First.Size == 0 && size >= SegmentBytes; size /= 16 {
		s.First.reserve(size, true)
	}
}

// reserve makes r a region of size bytes. If withPageWords is set, it has page words.
func (r *region) reserve(size uintptr, withPageWords bool) error {
	tables := uintptr(0)
	table := func(bytes uintptr) (at uintptr) {
		at = tables
		tables += vm.RoundUp(bytes, vm.PageBytes())
		return at
	}
	pages, words := table(size/PageBytes*WordBytes), uintptr(0)
	if withPageWords {
		words = table(size / PageBytes * pageWordBytes)
	}
	dirty, owners := table(size/PageBytes/8), table(size/SegmentBytes*ownerBytes)
	charges := table(size / SegmentBytes)
	tables = vm.RoundUp(tables, SegmentBytes)
	// One reservation, since a part could not be given back if another were refused.
	// The tables are in front, where no overrun of a block can reach them.
	at, err := vm.Reserve(tables+size, SegmentBytes)
	if err != nil {
		return err
	}
	r.pages, r.dirty, r.owners = at+pages, Bitmap(at+dirty), at+owners
	r.charges = at + charges
	if withPageWords {
		r.pageWords = at + words
	}
	r.Base, r.Size = at+tables, size
	return nil
}

// open makes the tables of the next size bytes of r accessible, and adds the bytes to
// used.
//
// Precondition: Space.mu is held and r has size bytes left.
func (r *region) open(size uintptr) error {
	used := r.used.Load()
	commit := func(table, perSegment uintptr) error {
		os := vm.PageBytes()
		from := vm.RoundUp(used/SegmentBytes*perSegment, os)
		to := vm.RoundUp((used+size)/SegmentBytes*perSegment, os)
		if from == to {
			return nil
		}
		return vm.Commit(table+from, to-from)
	}
	const perSegment = SegmentBytes / PageBytes
	if err := commit(r.pages, perSegment*WordBytes); err != nil {
		return err
	}
	if r.pageWords != 0 {
		if err := commit(r.pageWords, perSegment*pageWordBytes); err != nil {
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

// Holds reports whether addr is in the used part of r.
func (r *region) Holds(addr uintptr) bool {
	used := r.used.Load()
	return used != 0 && addr-r.Base < used
}

// page returns the word in pages of the page that holds addr.
//
// Precondition: addr is in the used part of r.
func (r *region) page(addr uintptr) **Span {
	return (**Span)(vm.Pointer(r.pages + (addr-r.Base)>>PageShift*WordBytes))
}

// pageIndex returns the position in r.dirty of the page that holds addr.
func (r *region) pageIndex(addr uintptr) uintptr { return (addr - r.Base) >> PageShift }

// Owner returns the word in owners of the 4 MiB that hold addr.
func (r *region) Owner(addr uintptr) *uint32 {
	return (*uint32)(vm.Pointer(r.owners + (addr-r.Base)/SegmentBytes*ownerBytes))
}

// RegionOf returns the region whose used part holds addr, or nil.
func (s *Space) RegionOf(addr uintptr) *region {
	if s.First.Holds(addr) {
		return &s.First
	}
	if chained := s.chained.Load(); chained != nil {
		for _, r := range *chained {
			if r.Holds(addr) {
				return r
			}
		}
	}
	return nil
}

// Span returns the span in the word of addr's page. It is nil inside large blocks and free
// runs, and if addr is not in r.
func (r *region) Span(addr uintptr) *Span {
	if r.Holds(addr) {
		return *r.page(addr)
	}
	return nil
}

// SpanAt is Span of the region that holds addr, or nil if none does.
func SpanAt(addr uintptr) *Span {
	if s := Addresses.First.Span(addr); s != nil {
		return s
	}
	return spanBeyond(addr)
}

// spanBeyond is SpanAt without the first region.
func spanBeyond(addr uintptr) *Span {
	if chained := Addresses.chained.Load(); chained != nil {
		for _, r := range *chained {
			if s := r.Span(addr); s != nil {
				return s
			}
		}
	}
	return nil
}

// take returns a segment of size bytes, a multiple of SegmentBytes, for a heap. Its memory is
// inaccessible and its words are 0. Its dirty bits are 0 too, except for memory that give could
// not revoke.
func (s *Space) take(size uintptr, owner uint32) (uintptr, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	addr, err := s.find(size)
	if err != nil {
		return 0, err
	}
	s.setOwner(addr, size, owner)
	return addr, nil
}

// takeAt is take for the addresses from at on. It fails with errTaken unless they are the next
// unused ones of a region.
func (s *Space) takeAt(at, size uintptr, owner uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.RegionOf(at - 1)
	if r == nil || r.Base+r.used.Load() != at || r.Size-r.used.Load() < size {
		return errTaken
	}
	if err := r.open(size); err != nil {
		return err
	}
	s.setOwner(at, size, owner)
	return nil
}

// find returns size bytes of addresses: the best fit among the returned segments, or else unused
// addresses of the first region with enough room. mu is held.
func (s *Space) find(size uintptr) (uintptr, error) {
	best := -1
	for i, f := range s.returned {
		if f.Size >= size && (best < 0 || f.Size < s.returned[best].Size) {
			best = i
		}
	}
	if best >= 0 {
		f := &s.returned[best]
		addr := f.Base
		f.Base += size
		if f.Size -= size; f.Size == 0 {
			s.returned = append(s.returned[:best], s.returned[best+1:]...)
		}
		return addr, nil
	}
	s.startFirst()
	r := &s.First
	if chained := s.chained.Load(); chained != nil {
		for i := 0; i < len(*chained) && r.Size-r.used.Load() < size; i++ {
			r = (*chained)[i]
		}
	}
	if r.Size-r.used.Load() < size {
		var err error
		if r, err = s.chain(size); err != nil {
			return 0, err
		}
	}
	addr := r.Base + r.used.Load()
	if err := r.open(size); err != nil {
		return 0, err
	}
	return addr, nil
}

// chain reserves another region, of size bytes or more. Under a limit on addresses it takes at
// most half of the rest, and leaves goBytes. It copies the list of regions, so a reader sees the
// old list or the new one. mu is held.
func (s *Space) chain(size uintptr) (*region, error) {
	const more = 2 * SegmentBytes // tables and alignment of a small region
	if left := vm.AddressesLeft(); size > left/2-more || size > left-goBytes-more || left < goBytes+more {
		return nil, errForGo
	}
	r := &region{}
	var err error
	want := max(vm.MaxReserve(), SegmentBytes, size)
	for {
		if err = r.reserve(want, false); err == nil {
			break
		}
		if want == size {
			return nil, err
		}
		want = max(vm.RoundUp(want/4, SegmentBytes), size)
	}
	var chained []*region
	if old := s.chained.Load(); old != nil {
		chained = append(chained, *old...)
	}
	chained = append(chained, r)
	s.chained.Store(&chained)
	return r, nil
}

// give takes a segment back from a heap that is closing. It revokes the memory and clears the
// words before another heap can take the segment. It merges neighbours among the returned
// segments.
func (s *Space) give(addr, size uintptr) {
	r := s.RegionOf(addr)
	// If the system refuses, the memory stays resident and its dirty bits set. The
	// next heap is charged for it.
	if vm.Revoke(addr, size) == nil {
		r.dirty.ClearRange(r.pageIndex(addr), size/PageBytes)
	}
	zeroByDropping(uintptr(unsafe.Pointer(r.page(addr))), size/PageBytes*WordBytes, vm.PageBytes())
	if r.pageWords != 0 {
		zeroByDropping(uintptr(unsafe.Pointer(r.PageWord(addr-r.Base))), size/PageBytes*pageWordBytes, vm.PageBytes())
	}
	clearBytes(uintptr(unsafe.Pointer(r.charged(addr))), size/SegmentBytes)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.setOwner(addr, size, 0)
	for i := 0; i < len(s.returned); {
		f := s.returned[i]
		if f.Base+f.Size != addr && addr+size != f.Base || s.RegionOf(f.Base) != r {
			i++
			continue
		}
		addr, size = min(addr, f.Base), size+f.Size
		s.returned = append(s.returned[:i], s.returned[i+1:]...)
	}
	s.returned = append(s.returned, Range{addr, size})
}

func (s *Space) setOwner(addr, size uintptr, owner uint32) {
	r := s.RegionOf(addr)
	for a := addr; a < addr+size; a += SegmentBytes {
		atomic.StoreUint32(r.Owner(a), owner)
	}
}

// The unit of this package is PageBytes. Where the system's page is larger, memory is committed
// outwards and decommitted inwards, so that neighbours are safe.

// Commit makes [addr, addr+size) accessible.
func Commit(addr, size uintptr) error {
	os := vm.PageBytes()
	from := addr &^ (os - 1)
	return vm.Commit(from, vm.RoundUp(addr+size, os)-from)
}

// Decommit gives back the whole OS pages inside [addr, addr+size). It returns their range
// [from, to), which then reads zero.
func Decommit(addr, size uintptr) (from, to uintptr, err error) {
	os := vm.PageBytes()
	from, to = vm.RoundUp(addr, os), (addr+size)&^(os-1)
	if from >= to {
		return addr, addr, nil
	}
	return from, to, vm.Decommit(from, to-from)
}
