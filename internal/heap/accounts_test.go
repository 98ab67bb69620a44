// What each operation charges, gives back and notes.

package heap

import (
	"testing"

	"github.com/freehold-go/freehold/internal/pages"
)

// Whoever was under way when a heap was closed gets nothing of it.
func TestClosedHeapIsEmpty(t *testing.T) {
	h := makeHeap(Options{Decay: -1})
	h.Free(alloc(t, h, 1<<20))
	alloc(t, h, 100)
	h.Close()
	if st := h.Stats(); st.Active != 0 || st.Committed != 0 || st.Metadata != 0 || st.Resident != 0 || st.Retained != 0 || st.Blocks != 0 || st.Allocated != 0 || len(st.Classes) != 0 {
		t.Errorf("%+v", st)
	}
	if _, err := h.pages.AllocObject(pages.SpanBytes); err != pages.ErrClosed {
		t.Errorf("metadata: %v", err)
	}
	if _, err := h.pages.AllocBlock(1<<20, 8, false); err != pages.ErrClosed {
		t.Errorf("a large block: %v", err)
	}
	if _, _, err := h.pages.AllocRun(1, pages.PageBytes); err != pages.ErrClosed {
		t.Errorf("a run: %v", err)
	}
	if len(h.pages.AllSegments()) > 0 {
		t.Error("a closed heap holds addresses")
	}
}
