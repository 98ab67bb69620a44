package cmalloc_test

import (
	"testing"

	"github.com/freehold-go/freehold/cmalloc"
)

func TestLogsShowFigures(t *testing.T) {
	st := cmalloc.Stats{Allocated: 1, Active: -1, Metadata: -1, Resident: 0, Mapped: 5, Retained: -1}
	if got, want := st.LogValue().String(), "[allocated=1 resident=0 mapped=5]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := (*cmalloc.Heap)(nil).LogValue().String(); got != "<nil>" {
		t.Errorf("nil: %s", got)
	}
	var h cmalloc.Heap
	if got, want := len(h.LogValue().Group()), len(h.Stats().LogValue().Group()); got != want {
		t.Errorf("a heap shows %d figures, want %d", got, want)
	}
}
