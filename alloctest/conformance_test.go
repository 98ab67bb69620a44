package alloctest_test

import (
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/panics"
)

func TestRightAllocatorPasses(t *testing.T) {
	alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
		return newToy("")
	}, &alloctest.Options{Detects: alloctest.AllMistakes})
}

func TestLockedAllocatorPassesConcurrently(t *testing.T) {
	alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
		return freehold.NewLocked(newToy(""))
	}, &alloctest.Options{Detects: alloctest.AllMistakes, Concurrent: true})
}

func TestWrapperThatCannotTellItsBlocksPasses(t *testing.T) {
	alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
		return freehold.NewLocked(struct{ freehold.Allocator }{newToy("")})
	}, &alloctest.Options{Detects: alloctest.AllMistakes})
}

// TestDefectsAreFound runs the suite on allocators with one defect each.
func TestDefectsAreFound(t *testing.T) {
	found := map[string]bool{} // by check
	tests := []struct{ defect, by string }{
		{"capacity is not clipped", "Sizes"},
		{"a block is in the list twice", "Sizes"},
		{"Free writes a link behind the block", "Mistakes"},
		{"a small block is not aligned", "Alignments"},
		{"Zeroed clears no more than a page", "Zeroed"},
		{"capacity is not clipped", "Append"},
		{"Resize loses the contents", "Resize"},
		{"Resize moves the contents", "Resize"},
		{"a failed Resize writes to the block", "Resize"},
		{"an empty block is nil", "Empty"},
		{"an empty block is not resized to 0", "Empty"},
		{"a negative size is empty", "Arguments"},
		{"a negative size panics without saying what", "Arguments"},
		{"any alignment goes", "Arguments"},
		{"another error", "OutOfMemory"},
		{"a huge size wraps around", "OutOfMemory"},
		{"owns everything", "Owner"},
		{"owns no interior", "Owner"},
		{"a double free is taken", "Mistakes"},
		{"an interior free is ignored", "Mistakes"},
		{"a short free is taken", "Mistakes"},
		{"a block is in the list twice", "Programs"},
		{"Zeroed clears no more than a page", "Programs"},
		{"Resize loses the contents", "Programs"},
		{"Resize moves the contents", "Programs"},
		{"a failed Resize writes to the block", "Programs"},
	}
	for _, c := range tests {
		check := func(t testing.TB) { alloctest.Check(t, c.by, newToy(c.defect)) }
		if len(record(t, check)) == 0 {
			t.Errorf("%s: not found by %s", c.defect, c.by)
		}
		found[c.by] = true
	}
	for _, name := range alloctest.Checks() {
		if !found[name] && name != "Concurrent" && name != "HandOver" { // these two need the race detector
			t.Errorf("no defect is found by %s", name)
		}
	}
}

// none is an allocator that never gives memory.
type none struct{}

func (none) Alloc(size, align int) ([]byte, error) {
	if size > 0 {
		return nil, freehold.ErrOutOfMemory
	}
	return []byte{}, nil
}

func (n none) Zeroed(size, align int) ([]byte, error) { return n.Alloc(size, align) }
func (none) Resize(b []byte, size int) ([]byte, bool) { return []byte{}, size == 0 }
func (none) Free(b []byte)                            {}

func TestAnAllocatorWithoutMemoryFails(t *testing.T) {
	if failures := record(t, func(t testing.TB) { alloctest.Check(t, "Sizes", none{}) }); len(failures) == 0 {
		t.Error("it passes")
	}
}

func TestNegativeAndNilArgumentsPanic(t *testing.T) {
	for want, call := range map[string]func(){
		"freehold: alloctest.TestAllocator: Options.MaxSize -1, want 0 or more":  func() { alloctest.TestAllocator(t, nil, &alloctest.Options{MaxSize: -1}) },
		"freehold: alloctest.TestAllocator: Options.MaxAlign -1, want 0 or more": func() { alloctest.TestAllocator(t, nil, &alloctest.Options{MaxAlign: -1}) },
		"freehold: alloctest.New: t is nil":                                      func() { alloctest.New(nil) },
		"freehold: alloctest.FailAfter: a is nil":                                func() { alloctest.FailAfter(nil, 0) },
	} {
		panics.Want(t, want, call)
	}
}
