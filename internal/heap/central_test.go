// Central: blocks without a magazine.

package heap

import (
	"testing"
)

// A block that is free in its span is handed out though there is no memory for
// a magazine to carry others with it.
func TestFreeBlocksAreHandedOutWithoutAMagazine(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 4 << 20})
	var live [][]byte
	for range 5000 {
		live = append(live, alloc(t, h, 24))
	}
	for i := 0; i < len(live); i += 2 {
		h.Free(live[i])
	}
	h.Trim()
	class, _ := entryOf(live[1])
	size := classes[class].magazineBytes()
	var objects []uintptr
	for {
		h.pages.mu.Lock()
		addr, err := h.pages.newObject(size)
		h.pages.mu.Unlock()
		if err == nil {
			objects = append(objects, addr)
		} else if b, err := h.Alloc(maxSmall+1, 8, false); err == nil {
			live = append(live, b)
		} else {
			break
		}
	}
	for i := range 2500 {
		b, err := h.Alloc(24, 8, false)
		if err != nil {
			t.Fatalf("block %d of 2500 that lie free: %v", i, err)
		}
		live = append(live, b)
	}
	h.pages.mu.Lock()
	for _, addr := range objects {
		h.pages.dropObject(addr, size)
	}
	h.pages.mu.Unlock()
	h.check(t)
}
