// Holes: the memory of free blocks inside spans.

package heap

import (
	"testing"

	"github.com/freehold-go/freehold/internal/vm"
)

func TestHolesAreMadeOnce(t *testing.T) {
	if !vm.HolesReadZero {
		t.Skip("this system has no holes")
	}
	h := newHeap(t, Options{})
	var live [][]byte
	for range 2000 {
		live = append(live, alloc(t, h, 1000))
	}
	for i, b := range live {
		if i%50 > 0 {
			h.Free(b)
		}
	}
	if calls := callsOf(h.Trim); calls[vm.OpDecommit] == 0 {
		t.Fatal("no holes were made")
	}
	if calls := callsOf(h.Trim); calls[vm.OpDecommit] != 0 {
		t.Errorf("%d system calls for holes that are there", calls[vm.OpDecommit])
	}
}

// A hole in a span that was given back reads zero or is cleared.
func TestZeroedAfterHoles(t *testing.T) {
	if !vm.HolesReadZero {
		t.Skip("this system has no holes")
	}
	h := newHeap(t, Options{})
	var live [][]byte
	for range 2000 {
		b := alloc(t, h, 1000)
		fill(b, 0xA5)
		live = append(live, b)
	}
	var kept [][]byte
	for i, b := range live {
		if i%50 == 0 {
			kept = append(kept, b)
		} else {
			h.Free(b)
		}
	}
	before := h.Stats()
	h.Trim()
	h.check(t)
	after := h.Stats()
	if after.Resident >= before.Resident/2 {
		t.Errorf("resident went from %d to %d with 1 block in 50 left", before.Resident, after.Resident)
	}
	for _, b := range kept {
		if !allSet(b, 0xA5) {
			t.Fatal("a survivor changed")
		}
	}
	for range 1900 {
		b, _ := h.Alloc(1000, 1, true)
		if !allSet(b, 0) {
			t.Fatal("not zero")
		}
		fill(b, 1)
	}
	for _, b := range kept {
		if !allSet(b, 0xA5) {
			t.Fatal("a survivor changed")
		}
	}
	h.check(t)
}
