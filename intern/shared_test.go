package intern_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/intern"
	"github.com/freehold-go/freehold/internal/panics"
)

// Goroutines that intern the same strings get the same IDs, and what any of them was told
// can be read at once by all.
func TestSharedByGoroutines(t *testing.T) {
	const goroutines, n = 4, 3000
	s := intern.NewShared(alloctest.New(t), nil)
	defer s.Close()
	var ids [n]atomic.Int64 // and one, of a string that is there
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for _, i := range r.Perm(n) {
				v := fmt.Sprint("string ", i)
				id, err := s.Intern(v)
				if err != nil || s.Value(id) != v {
					t.Errorf("%d, %v", id, err)
				}
				if was := ids[i].Swap(int64(id) + 1); was != 0 && was != int64(id)+1 {
					t.Errorf("%q has the IDs %d and %d", v, was-1, id)
				}
				other := r.IntN(n)
				if id := ids[other].Load(); id != 0 && s.Value(intern.ID(id-1)) != fmt.Sprint("string ", other) {
					t.Errorf("string %d is %q", other, s.Value(intern.ID(id-1)))
				}
				if i%64 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	wg.Wait()
	if s.Len() != n || s.Stats().IDs != n {
		t.Errorf("%+v", s.Stats())
	}
}

// All runs beside goroutines that add strings, and has each that was there before.
func TestSharedAllBesideWriters(t *testing.T) {
	for _, counted := range []bool{false, true} {
		s := intern.NewShared(alloctest.New(t), &intern.Options{RefCounts: counted})
		for i := range 1000 {
			freehold.Must(s.Intern(fmt.Sprint("kept ", i)))
		}
		var stop atomic.Bool
		var wg sync.WaitGroup
		for g := range 3 {
			wg.Go(func() {
				for i := 0; !stop.Load() && i < 20000; i++ {
					id, err := s.Intern(fmt.Sprint("new ", g, i%500))
					if err != nil {
						t.Error(err)
						return
					}
					if counted {
						s.Release(id)
					}
				}
			})
		}
		kept := 0
		for _, v := range s.All() {
			if v[:4] == "kept" {
				kept++
			}
		}
		stop.Store(true)
		wg.Wait()
		if kept != 1000 {
			t.Errorf("All has %d of 1000 strings", kept)
		}
		s.Close()
	}
}

// References from several goroutines keep a string, and the last one frees it.
func TestSharedReferences(t *testing.T) {
	s := intern.NewShared(alloctest.New(t), &intern.Options{RefCounts: true})
	defer s.Close()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 2))
			for range 5000 {
				v := fmt.Sprint("string ", r.IntN(20))
				id, err := s.Intern(v)
				if err != nil || s.Value(id) != v {
					t.Errorf("%d is %q, want %q, %v", id, s.Value(id), v, err)
					return
				}
				s.Retain(id)
				s.Release(id)
				if s.Value(id) != v {
					t.Errorf("%d is %q, want %q", id, s.Value(id), v)
				}
				s.Release(id)
			}
		})
	}
	wg.Wait()
	if st := s.Stats(); st.Len != 0 || st.LiveBytes != 0 || st.IDs > 20 {
		t.Errorf("%+v", st)
	}
}

// A loop over All that panics or ends early leaves no reference behind.
func TestSharedAllDropsItsReference(t *testing.T) {
	s := intern.NewShared(alloctest.New(t), &intern.Options{RefCounts: true})
	defer s.Close()
	id := freehold.Must(s.Intern("a"))
	panics.Of(func() {
		for range s.All() {
			panic("in the loop")
		}
	})
	for range s.All() {
		break
	}
	if !s.Release(id) {
		t.Error("a reference is left")
	}
}
