package hashmap

import (
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// freeing calls freed when a block has been freed, which alloctest has overwritten.
type freeing struct {
	freehold.Allocator
	freed func()
}

func (f *freeing) Free(b []byte) {
	f.Allocator.Free(b)
	f.freed()
}

// TestSharedFreesWhatNoReaderFinds: while a value is freed, Get finds the one that has replaced
// it, or none. Values of batchBytes are freed as soon as they are retired. Keys are no text:
// an overwritten one is not found.
func TestSharedFreesWhatNoReaderFinds(t *testing.T) {
	t.Run("string", func(t *testing.T) {
		testSharedFrees(t, strings.Repeat("o", batchBytes), strings.Repeat("n", batchBytes))
	})
	t.Run("large", func(t *testing.T) {
		testSharedFrees(t, [batchBytes]byte{1, batchBytes - 1: 1}, [batchBytes]byte{2, batchBytes - 1: 2})
	})
}

func testSharedFrees[V comparable](t *testing.T, old, replaced V) {
	for call, write := range map[string]struct {
		do    func(m *Shared[int, V])
		found bool
	}{
		"Put":      {func(m *Shared[int, V]) { succeed(m.Put(1, replaced)) }, true},
		"Update":   {func(m *Shared[int, V]) { succeed(m.Update(1, func(v *V, _ bool) { *v = replaced })) }, true},
		"Delete":   {func(m *Shared[int, V]) { m.Delete(1) }, false},
		"DeleteIf": {func(m *Shared[int, V]) { m.DeleteIf(1, func(V) bool { return true }) }, false},
		"Compute": {func(m *Shared[int, V]) {
			_, _, err := m.Compute(1, func(*V, bool) freehold.Change { return freehold.Remove })
			succeed(err)
		}, false},
		"Clear": {func(m *Shared[int, V]) { m.Clear() }, false},
	} {
		parent := &freeing{Allocator: alloctest.New(t), freed: func() {}}
		m := NewShared[int, V](parent, nil)
		succeed(m.Put(1, old))
		times := 0
		parent.freed = func() {
			times++
			key := 1
			// Get, but in race builds too, where that would wait for the writer.
			v, found, sure := m.getUnlocked(hashOf(&m.hash, &key), &key)
			if !sure || found != write.found || found && v != replaced {
				t.Errorf("%s: Get while the value is freed is %.20v, %t, sure: %t", call, v, found, sure)
			}
		}
		write.do(m)
		parent.freed = func() {}
		m.Close()
		if times == 0 {
			t.Errorf("%s freed nothing", call)
		}
	}
}

// refusesOnce calls refused before it refuses a block.
type refusesOnce struct {
	freehold.Allocator
	refused func()
}

func (r *refusesOnce) Alloc(size, align int) ([]byte, error) {
	if f := r.refused; f != nil {
		r.refused = nil
		f()
		return nil, freehold.ErrOutOfMemory
	}
	return r.Allocator.Alloc(size, align)
}

// A Put that was refused tries again if another goroutine has freed texts meanwhile, and has
// left none to free.
func TestSharedTriesAgainAfterOthersHaveFreed(t *testing.T) {
	parent := &refusesOnce{Allocator: alloctest.New(t)}
	m := NewShared[int, string](parent, nil)
	defer m.Close()
	succeed(m.Put(1, "old"))
	m.Delete(1)
	parent.refused = func() { m.retired.reclaim(&m.sharedTables) }
	if err := m.Put(1, "new"); err != nil {
		t.Error(err)
	}
	parent.refused = func() {}
	if err := m.Put(1, "newer"); err == nil {
		t.Error("a Put tries again though nothing was freed")
	}
}
