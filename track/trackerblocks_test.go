// Tracker: the bounds of blocks, and whose stack a block has.

package track_test

import (
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/track"
)

// fixed is an allocator of one block, the first of its bytes.
type fixed struct {
	freehold.Allocator
	bytes []byte
}

func (f fixed) Alloc(size, align int) ([]byte, error) { return f.bytes[:size:size], nil }
func (fixed) Free([]byte)                             {}

// What is behind a block is not in it, and an empty slice is in none.
func TestTrackerKnowsWhereBlocksEnd(t *testing.T) {
	bytes := make([]byte, 100)
	tracker := track.NewTracker(fixed{nil, bytes})
	b, err := tracker.Alloc(3, 1)
	if err != nil {
		t.Fatal(err)
	}
	if blocks, n := tracker.Live(); blocks != 1 || n != 3 {
		t.Errorf("%d blocks and %d bytes are live, want 1 and 3", blocks, n)
	}
	if !tracker.Owns(bytes[2:9]) || tracker.Owns(bytes[3:9]) || tracker.Owns(b[1:1]) {
		t.Errorf("Owns is %v in the block, %v behind it, and %v for an empty slice", tracker.Owns(bytes[2:9]), tracker.Owns(bytes[3:9]), tracker.Owns(b[1:1]))
	}
	mustBe := func(at int, what string) {
		t.Helper()
		if got := panicOf(func() { tracker.Free(bytes[at : at+1]) }); !strings.Contains(got, what) {
			t.Errorf("byte %d: panic %s, want %s", at, got, what)
		}
	}
	mustBe(2, "at byte 2 of a live block of 3 bytes")
	mustBe(3, "which this Tracker did not allocate")
	tracker.Free(b)
	mustBe(2, "in a freed block of 3 bytes")
	mustBe(3, "which this Tracker did not allocate")
}

//go:noinline
func shrink(a freehold.Allocator, b []byte) []byte {
	b, _ = a.Resize(b, len(b)/2)
	return b
}

// A resized block is a leak of the function that resized it.
func TestTrackerHasTheStackOfResize(t *testing.T) {
	a := arena.New(freehold.Default(), nil)
	defer a.Close()
	tracker := track.NewTracker(a)
	b := shrink(tracker, direct(tracker))
	if len(b) != 50 {
		t.Fatalf("%d bytes", len(b))
	}
	leaks := tracker.Leaks()
	if len(leaks) != 1 || leaks[0].Bytes != 50 || functionOf(leaks[0].Stack) != "shrink" {
		t.Errorf("%+v", leaks)
	}
}

// Blocks of one caller are one leak, whatever wrappers are between it and the Tracker.
func TestTrackerJoinsTheBlocksOfACaller(t *testing.T) {
	a := arena.New(freehold.Default(), nil)
	defer a.Close()
	tracker := track.NewTracker(a)
	for _, by := range []freehold.Allocator{tracker, freehold.NewLimit(tracker, 1000), freehold.NewTagged(tracker, "")} {
		direct(by)
	}
	if leaks := tracker.Leaks(); len(leaks) != 1 || leaks[0].Blocks != 3 || leaks[0].Bytes != 300 {
		t.Errorf("%+v", leaks)
	}
}
