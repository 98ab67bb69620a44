package pages

import (
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

// When runs have come and gone, no words have memory that is not charged, and few are charged.
func TestTablesGoBackWithTheirRuns(t *testing.T) {
	if !vm.HolesReadZero {
		t.Skip("tables stay here")
	}
	h := newHeap(t, Options{})
	var live [][]byte
	for range 3 << 10 {
		live = append(live, alloc(t, h, 32<<10))
	}
	h.check(t)
	if want := uintptr(len(live)*(32<<10)/SegmentBytes) * tableBytes; h.pages.tables < want {
		t.Errorf("tables is %d for 96 MiB of small blocks, want %d at least", h.pages.tables, want)
	}
	low, high := live[0], live[0]
	for _, b := range live {
		if uintptr(unsafe.Pointer(&b[0])) < uintptr(unsafe.Pointer(&low[0])) {
			low = b
		}
		if uintptr(unsafe.Pointer(&b[0])) > uintptr(unsafe.Pointer(&high[0])) {
			high = b
		}
	}
	from, to := uintptr(unsafe.Pointer(&low[0])), uintptr(unsafe.Pointer(&high[0]))
	for _, b := range live {
		h.Free(b)
	}
	h.Trim()
	segments := h.pages.total / SegmentBytes
	if got, most := h.pages.tables-segments*heldBytes, uintptr(2*len(h.pages.segments)+2)*tableBytes; got > most {
		t.Errorf("tables has %d bytes of words after Trim, want %d at most", got, most)
	}
	if !vm.TellsResident || vm.PageBytes() > 4<<10 || unsafe.Sizeof(uintptr(0)) < 8 {
		return
	}
	r := Addresses.RegionOf(from) // only now: reading a word gives it a page
	for name, table := range map[string]uintptr{"spans": r.pages, "page words": r.pageWords} {
		first, last := table+r.pageIndex(from)*8, table+r.pageIndex(to)*8
		first &^= vm.PageBytes() - 1
		pages := make([]byte, vm.RoundUp(last-first, vm.PageBytes())/vm.PageBytes())
		if err := vm.Resident(first, uintptr(len(pages))*vm.PageBytes(), pages); err != nil {
			t.Skip(err)
		}
		resident := 0
		for _, p := range pages {
			resident += int(p & 1)
		}
		if resident > len(h.pages.segments)*2+2 {
			t.Errorf("%d of %d pages of %s are resident after Trim", resident, len(pages), name)
		}
	}
}

// The tables count against the limit.
func TestTablesCountAgainstTheLimit(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 64 << 20})
	for {
		if _, err := h.Alloc(32<<10, 8, false); err != nil {
			break
		}
	}
	h.check(t) // this adds the tables up
	if h.pages.tables < 16*(tableBytes+heldBytes) {
		t.Errorf("tables is %d", h.pages.tables)
	}
}
