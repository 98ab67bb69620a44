package btree

import (
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// Unless the function returns Store, Compute leaves the value as it was, also if the function
// panics or returns another Change.
func TestComputeUndoes(t *testing.T) {
	m := New[string, int](alloctest.New(t), nil)
	defer m.Close()
	_ = m.Put("there", 1)
	const message = "freehold: btree.Map.Compute: f returned the Change 3, want Keep, Store or Remove"
	for _, key := range []string{"there", "absent"} {
		want, found := m.Get(key)
		for _, f := range []func(v *int, found bool) freehold.Change{
			func(v *int, _ bool) freehold.Change { *v = 2; return freehold.Keep },
			func(v *int, _ bool) freehold.Change { *v = 2; return 3 },
			func(v *int, _ bool) freehold.Change { *v = 2; panic(message) },
			func(v *int, _ bool) freehold.Change { *v = 2; _ = m.Put("other", 1); return freehold.Store },
		} {
			func() {
				defer func() {
					if p := recover(); p != nil && p != message && p != "freehold: btree.Map.Put: a function that another call calls must not change the map" {
						t.Error(p)
					}
				}()
				m.Compute(key, f)
			}()
			if got, ok := m.Get(key); got != want || ok != found || m.Len() != 1 {
				t.Errorf("%s has %d, %t, want %d, %t", key, got, ok, want, found)
			}
		}
	}
	mustPanic(t, "freehold: btree.Map.Compute: f is nil", func() { m.Compute("", nil) })
	mustPanic(t, "freehold: btree.Map.GetAt: Options.Ranks is not set", func() { m.GetAt(0) })
	mustPanic(t, "freehold: btree.Map.Rank: Options.Ranks is not set", func() { m.Rank("") })
	if n := testing.AllocsPerRun(100, func() {
		m.Compute("absent", func(v *int, _ bool) freehold.Change { return freehold.Keep })
	}); n > 0 {
		t.Errorf("%g allocations for an absent key", n)
	}
}
