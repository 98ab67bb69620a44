// Advice: it ends with the block.

package pages

import (
	"testing"

	"github.com/freehold-go/freehold/internal/vm"
)

// Advice that the system took for a part of a block ends with the block too.
func TestAdviceThatFailedEndsWithItsBlock(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 1<<20)
	restore := refuse(vm.OpAdvise)
	err := Advise(b, vm.Sequential)
	restore()
	if err == nil {
		t.Fatal("the advice was taken")
	}
	if calls := callsOf(func() { h.Free(b) }); calls[vm.OpRenew] != 1 {
		t.Errorf("the pages were mapped anew %d times", calls[vm.OpRenew])
	}
}

// What may be dropped is the pages inside a block, not those that it shares.
func TestAdviceStaysInsideTheBlock(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, int(8*vm.PageBytes()))
	if err := Advise(b[:1], vm.DontNeed); err != nil {
		t.Errorf("no whole page: %v", err)
	}
	if err := Advise(make([]byte, 1<<20), vm.WillNeed); err != vm.ErrUnsupported {
		t.Errorf("memory of the Go heap: %v", err)
	}
	fill(b, 5)
	for _, part := range [][2]int{{1, len(b) - 1}, {100, 200}, {1, int(vm.PageBytes()) + 1}} {
		if err := Advise(b[part[0]:part[1]], vm.DontNeed); err != nil {
			t.Skip("this system drops nothing: ", err)
		}
		if !allSet(b[:part[0]], 5) || !allSet(b[part[1]:], 5) {
			t.Errorf("bytes %d to %d were not needed, and others are gone", part[0], part[1])
		}
		fill(b, 5)
	}
}

// A small block shares its run with others, so it takes no advice that persists with a mapping.
func TestAdviceThatPersistsIsNotForSmallBlocks(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 32<<10)
	s := SpanAt(addrOf(b))
	s.Kind = BlockRun
	calls := callsOf(func() {
		for _, advice := range []vm.Advice{vm.HugePages, vm.Sequential, vm.Random} {
			if err := Advise(b, advice); err != nil {
				t.Errorf("advice %d: %v", advice, err)
			}
		}
	})
	if calls[vm.OpAdvise] != 0 || s.Separate != 0 {
		t.Errorf("the system got advice %d times", calls[vm.OpAdvise])
	}
	s.Kind = LargeRun
}
