package alloctest_test

import (
	"errors"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/panics"
)

func TestFailingAllocatorsConformUntilTheyFail(t *testing.T) {
	alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
		return alloctest.FailAfter(alloctest.New(t), 1<<30)
	}, &alloctest.Options{Concurrent: true, Detects: alloctest.AllMistakes})
	for n := range 20 {
		alloctest.RunProgram(t, alloctest.FailAfter(alloctest.New(t), n), program(100))
		alloctest.RunProgram(t, alloctest.FailOnce(alloctest.New(t), n), program(100))
	}
}

// answers makes eight allocations and returns which of them succeeded.
func answers(t *testing.T, a freehold.Allocator) (ok [8]bool) {
	for i := range ok {
		call := a.Alloc
		if i%2 == 1 {
			call = a.Zeroed
		}
		b, err := call(8, 8)
		ok[i] = err == nil
		if err != nil && !errors.Is(err, freehold.ErrOutOfMemory) {
			t.Errorf("error %v", err)
		}
		a.Free(b)
	}
	return ok
}

func TestFailAfterFailsFromThenOn(t *testing.T) {
	for n := range 9 {
		for i, ok := range answers(t, alloctest.FailAfter(alloctest.New(t), n)) {
			if ok != (i < n) {
				t.Errorf("n = %d: allocation %d succeeded: %t", n, i+1, ok)
			}
		}
	}
}

func TestFailOnceFailsOnce(t *testing.T) {
	for n := range 9 {
		for i, ok := range answers(t, alloctest.FailOnce(alloctest.New(t), n)) {
			if ok != (i != n) {
				t.Errorf("n = %d: allocation %d succeeded: %t", n, i+1, ok)
			}
		}
	}
}

// An allocation that the allocator below refuses does not count.
func TestFailAfterCountsWhatSucceeds(t *testing.T) {
	want := [8]bool{false, true, true}
	if got := answers(t, alloctest.FailAfter(alloctest.FailOnce(alloctest.New(t), 0), 2)); got != want {
		t.Errorf("succeeded: %t, want %t", got, want)
	}
}

// A wrong alignment panics even if the allocation would fail.
func TestFailingPanicsForAWrongAlignmentFirst(t *testing.T) {
	for name, a := range map[string]freehold.Allocator{
		"FailAfter": alloctest.FailAfter(alloctest.New(t), 0),
		"FailOnce":  alloctest.FailOnce(alloctest.New(t), 0),
	} {
		for call, alloc := range map[string]func(size, align int) ([]byte, error){"Alloc": a.Alloc, "Zeroed": a.Zeroed} {
			if got, want := panics.Of(func() { alloc(8, 3) }), "freehold: alloctest.Allocator."+call+": alignment 3, want a power of two"; got != want {
				t.Errorf("%s: panic %q, want %q", name, got, want)
			}
		}
	}
}

func TestFailingWantsNoNegativeNumber(t *testing.T) {
	for want, call := range map[string]func(){
		"freehold: alloctest.FailAfter: n -1, want 0 or more": func() { alloctest.FailAfter(freehold.Default(), -1) },
		"freehold: alloctest.FailOnce: n -2, want 0 or more":  func() { alloctest.FailOnce(freehold.Default(), -2) },
	} {
		panics.Want(t, want, call)
	}
}

func TestFailAfterLetsEmptyBlocksAndShrinkingPass(t *testing.T) {
	a := alloctest.FailAfter(alloctest.New(t), 1)
	b := freehold.Must(a.Alloc(16, 8))
	if _, err := a.Zeroed(0, 8); err != nil {
		t.Errorf("an empty block: %v", err)
	}
	for _, size := range []int{16, 8} {
		var ok bool
		if b, ok = a.Resize(b, size); !ok {
			t.Fatalf("not resized to %d bytes", size)
		}
	}
	a.Free(b)
}

// TestFailingResize: a Resize that grows a block counts if it succeeds, and reports
// false after n successes.
func TestFailingResize(t *testing.T) {
	for _, c := range []struct {
		n    int
		want [3]bool
	}{
		{1, [3]bool{}}, // the Alloc was the only success
		{2, [3]bool{true}},
		{3, [3]bool{true, true}},
		{4, [3]bool{true, true, true}},
	} {
		a := alloctest.FailAfter(newToy(""), c.n)
		b := freehold.Must(a.Alloc(64, 8))
		b, _ = a.Resize(b, 8)
		if _, ok := a.Resize(b, 100); ok {
			t.Fatal("toy grew a block beyond its class")
		}
		for i, want := range c.want {
			r, ok := a.Resize(b, len(b)+8)
			if ok != want {
				t.Errorf("n = %d: growth %d succeeded: %t", c.n, i+1, ok)
			}
			if ok {
				b = r
			}
		}
		a.Free(b)
	}
}

// TestFailOnceFailsTheCopyAfterTheResize: if the Resize took the failure, the
// copy would succeed and the operation never see an error.
func TestFailOnceFailsTheCopyAfterTheResize(t *testing.T) {
	a := alloctest.FailOnce(newToy(""), 1)
	b := freehold.Must(a.Alloc(8, 8))
	if _, err := freehold.Realloc(a, b, 16, 8); !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Errorf("Realloc: %v", err)
	}
	b, err := freehold.Realloc(a, b, 16, 8)
	if err != nil {
		t.Errorf("Realloc after the one failure: %v", err)
	}
	a.Free(b)
}
