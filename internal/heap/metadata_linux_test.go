//go:build !race

package heap

import "testing"

// TestReturnedMetadataIsOneMapping: otherwise a process that has reached its number of
// mappings, by many heaps, has no more of them once the heaps are closed.
func TestReturnedMetadataIsOneMapping(t *testing.T) {
	var m metadataSpace
	var segments []uintptr
	for range metadataRegionBytes / metadataSegmentBytes {
		addr, err := m.take()
		if err != nil {
			t.Fatal(err)
		}
		if err := commit(addr, slabBytes); err != nil {
			t.Fatal(err)
		}
		*slabAt(addr) = slab{size: 1}
		segments = append(segments, addr)
	}
	all := []addrRange{{segments[0], metadataRegionBytes}}
	before := len(mappingsIn(t, all))
	for _, i := range []int{1, 0, 3, 2} { // whatever the order
		for ; i < len(segments); i += 4 {
			m.give(segments[i])
		}
	}
	// QEMU's own memory makes two of them.
	if after := len(mappingsIn(t, all)); after > 2 || before < len(segments) {
		t.Errorf("%d mappings of %d segments when they are returned, %d before", after, len(segments), before)
	}
	for _, addr := range segments {
		if *slabAt(addr) != (slab{}) {
			t.Error("a returned segment does not read zero")
		}
	}
	addr, err := m.take()
	if err != nil {
		t.Fatal(err)
	}
	if err := commit(addr, slabBytes); err != nil {
		t.Fatal(err)
	}
	*slabAt(addr) = slab{size: 1}
}
