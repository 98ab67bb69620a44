package hashmap

import (
	"math/rand/v2"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/panics"
)

// compute calls Compute with a function that returns each Change in turn, one that is none, or
// panics. Only a Change that it returns has an effect.
func (m *model[K, V]) compute(k K, v V, change freehold.Change) {
	want, had := m.want[k]
	ended := false
	defer func() {
		if r := recover(); r != nil && (ended || change <= freehold.Remove) {
			panic(r)
		}
		m.get(k)
	}()
	got, found, err := m.m.Compute(k, func(p *V, found bool) freehold.Change {
		if found != had || !m.equal(*p, want) {
			m.t.Fatalf("Compute(%v) finds %v, %t; want %v, %t", k, *p, found, want, had)
		}
		if *p = v; change > freehold.Remove+1 {
			panic("f")
		}
		return change
	})
	if ended = true; err != nil {
		m.refused(err)
		return
	}
	if found != had || !m.equal(got, want) {
		m.t.Fatalf("Compute(%v) = %v, %t; want %v, %t", k, got, found, want, had)
	}
	switch change {
	case freehold.Store:
		m.want[k] = v
	case freehold.Remove:
		delete(m.want, k)
	}
}

// What the function of Compute got, and what Compute returns, is not the map's memory, and a
// function that is not valid or changes a Map changes nothing.
func TestCompute(t *testing.T) {
	both(t, func(t *testing.T, open maker[string, []byte]) {
		m := open(alloctest.New(t), 0)
		defer m.Close()
		succeed(m.Put("key", []byte("value")))
		call := "hashmap.Shared.Compute"
		if m, ok := m.(*Map[string, []byte]); ok {
			call = "hashmap.Map.Compute"
			panics.Want(t, "freehold: hashmap.Map.Put: a function that another call calls must not change the map", func() {
				_, _, _ = m.Compute("key", func(v *[]byte, _ bool) freehold.Change {
					(*v)[0] = 'V'
					_ = m.Put("other", nil)
					return freehold.Store
				})
			})
		}
		panics.Want(t, "freehold: "+call+": f is nil", func() { m.Compute("key", nil) })
		panics.Want(t, "freehold: "+call+": f returned the Change 3, want Keep, Store or Remove", func() {
			m.Compute("key", func(v *[]byte, _ bool) freehold.Change { (*v)[0] = 'V'; return 3 })
		})
		if v, _ := m.Get("key"); string(v) != "value" || m.Len() != 1 {
			t.Fatalf("the value is %s, of %d entries", v, m.Len())
		}
		old, _, err := m.Compute("key", func(*[]byte, bool) freehold.Change { return freehold.Remove })
		if m.Close(); string(old) != "value" || err != nil { // which frees the text
			t.Errorf("the value was %s, %v", old, err)
		}
	})
}

// The users of a key are counted, and its entry is removed with the last: no goroutine sees it with
// none, and none is lost.
func TestSharedComputeIsOneStep(t *testing.T) {
	m := NewShared[int, int](alloctest.New(t), nil)
	defer m.Close()
	var users []func(*rand.Rand)
	for range 4 {
		users = append(users, func(*rand.Rand) {
			for i := range rounds(20_000) {
				before, found, err := m.Compute(i%4, func(n *int, _ bool) freehold.Change { *n++; return freehold.Store })
				if succeed(err); found != (before > 0) {
					t.Errorf("an entry of %d users, %t", before, found)
				}
				m.Compute(i%4, func(n *int, _ bool) freehold.Change {
					if *n--; *n == 0 {
						return freehold.Remove
					}
					return freehold.Store
				})
			}
		})
	}
	beside(users, nil)
	if m.checkAll(); m.Len() != 0 {
		t.Errorf("%d entries are left", m.Len())
	}
}
