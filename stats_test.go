package freehold

import (
	"reflect"
	"testing"

	"github.com/freehold-go/freehold/internal/heap"
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
