//go:build !race

package pages

import "testing"

// TestReturnedMetadataIsOneMapping: otherwise a process whose many heaps have used up its
// mappings would lack them after the heaps are closed.
func TestReturnedMetadataIsOneMapping(t *testing.T) {
	var m metadataSpace
	var segments []uintptr
	for range metadataRegionBytes / metadataSegmentBytes {
		addr, err := m.take()
		if err != nil {
			t.Fatal(err)
		}
		if err := Commit(addr, SlabBytes); err != nil {
			t.Fatal(err)
		}
		*slabAt(addr) = slab{Size: 1}
		segments = append(segments, addr)
	}
	before := len(mappingsIn(t, Range{segments[0], metadataRegionBytes}))
	for _, i := range []int{1, 0, 3, 2} { // in any order
		for ; i < len(segments); i += 4 {
			m.give(segments[i])
		}
	}
	// QEMU's own memory splits the mapping in two.
	if after := len(mappingsIn(t, Range{segments[0], metadataRegionBytes})); after > 2 || before < len(segments) {
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
	if err := Commit(addr, SlabBytes); err != nil {
		t.Fatal(err)
	}
	*slabAt(addr) = slab{Size: 1}
}
