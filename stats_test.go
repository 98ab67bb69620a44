package freehold

import (
	"reflect"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/heap"
	"github.com/freehold-go/freehold/internal/vm"
)

// Each figure has a different value, which detects a swap.
func TestStatsAreTheEngines(t *testing.T) {
	got := statsOf(heap.Stats{
		Name: "h", Allocated: 1, Active: 2, Resident: 3, Retained: 4, Metadata: 5, Committed: 6, MaxBytes: 7,
		Blocks: 8, LargeBlocks: 9, LargeBytes: 10, SlowAllocs: 16, SlowFrees: 17, Refusals: 18, PurgedBytes: 19,
		Classes: []heap.ClassStats{{Size: 11, Blocks: 12, Cached: 13, Free: 14, Spans: 15}},
	})
	want := Stats{
		Name: "h", LiveBytes: 1, Active: 2, Resident: 3, Retained: 4, Metadata: 5, Committed: 6, MaxBytes: 7,
		Live: 8, Large: 9, LargeBytes: 10, SlowAllocs: 16, SlowFrees: 17, Refusals: 18, PurgedBytes: 19,
		Classes: []ClassStats{{BlockSize: 11, Live: 12, Cached: 13, Free: 14, Spans: 15}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Whether the system took the memory back or refused.
func TestPagesAreZero(t *testing.T) {
	restore := vm.SetFault(func(op vm.Op) error {
		if op == vm.OpDecommit {
			return vm.ErrNoMemory
		}
		return nil
	})
	defer restore()
	for range 3 {
		b := Must(Pages().Zeroed(100_000, 8))
		if uintptr(unsafe.Pointer(&b[0]))%8192 != 0 {
			t.Error("a block does not begin at a page")
		}
		for i := range b {
			if b[i] != 0 {
				t.Fatalf("byte %d is %d", i, b[i])
			}
			b[i] = 1
		}
		Pages().Free(b)
	}
}

func TestPagesGoBackWhenTheyAreFreed(t *testing.T) {
	NeedsPlainBlocks(t)
	b := Must(Pages().Alloc(100_000, 8))
	var given atomic.Int32 // timers of other heaps give memory back too
	restore := vm.SetFault(func(op vm.Op) error {
		if op == vm.OpDecommit {
			given.Add(1)
		}
		return nil
	})
	Pages().Free(b)
	restore()
	if given.Load() == 0 {
		t.Error("nothing was given back")
	}
}
