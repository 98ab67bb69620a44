// Close: the remains of a heap, and the next owner of its addresses.

package heap

import (
	"strings"
	"testing"

	"github.com/freehold-go/freehold/internal/small"
)

// The block of a closed heap is no other heap's, whoever has its number now.
func TestClosedHeapsBlocksAreNobodys(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 64)
	number := h.mapID
	h.Close()
	if _, _, ok := small.PageWord(small.AddrOf(b), number); ok {
		t.Error("a heap of the same number would find the block's status")
	}
	next := newHeap(t, Options{})
	if next.mapID != number {
		t.Fatalf("number %#x was given back, and %#x taken", number, next.mapID)
	}
	if next.Owns(b) {
		t.Error("the next heap owns the block")
	}
	if got := next.diagnose("Free", b); !strings.HasPrefix(got, "the memory belongs to no open heap") {
		t.Errorf("the next heap says that %s", got)
	}
}
