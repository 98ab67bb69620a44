//go:build !race

package pages

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// mappingsIn returns the number of mappings in [addr, addr+size).
func mappingsIn(t *testing.T, addr, size uintptr) (n int) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(maps)) {
		var from, to uintptr
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err == nil && from < addr+size && addr < to {
			n++
		}
	}
	return n
}

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
	before := mappingsIn(t, segments[0], metadataRegionBytes)
	for _, i := range []int{1, 0, 3, 2} { // in any order
		for ; i < len(segments); i += 4 {
			m.give(segments[i])
		}
	}
	// QEMU's own memory splits the mapping in two.
	if after := mappingsIn(t, segments[0], metadataRegionBytes); after > 2 || before < len(segments) {
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
