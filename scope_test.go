package freehold_test

import (
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/btree"
)

func TestScopeConforms(t *testing.T) {
	alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
		s := freehold.NewScope(alloctest.New(t))
		t.Cleanup(func() {
			if n := s.Close(); n > 0 {
				t.Errorf("Close freed %d blocks of none", n)
			}
		})
		return s
	}, &alloctest.Options{Concurrent: true, Detects: alloctest.AllMistakes})
}

// Close frees what is live, whatever calls it came from. Below is a test allocator, which reports
// each block that stays, and each that is freed twice.
func TestScopeFreesWhatIsLeft(t *testing.T) {
	s := freehold.NewScope(mover{alloctest.New(t)})
	for i := range 100 {
		b := freehold.Must(s.Alloc(i, 8))
		switch i % 5 {
		case 0:
			s.Free(b)
		case 1:
			freehold.Must(freehold.Realloc(s, b, 2*i, 8))
		case 2:
			freehold.Must(freehold.Realloc(s, b, 0, 8))
		case 3:
			if _, ok := s.Resize(b, i/2); !ok {
				freehold.Must(s.Zeroed(1<<20, 4096))
			}
		}
	}
	if n := s.Live(); n < 50 || s.Close() != n || s.Close() != 0 || s.Live() != 0 {
		t.Errorf("%d blocks were live", n)
	}
}

// reuser gives the block of a Free to the Alloc that its owner makes during that Free.
type reuser struct {
	*alloctest.Allocator
	freed  []byte
	during func()
}

func (r *reuser) Alloc(size, align int) ([]byte, error) {
	if b := r.freed; b != nil {
		r.freed = nil
		return b, nil
	}
	return r.Allocator.Alloc(size, align)
}

func (r *reuser) Free(b []byte) {
	if f := r.during; f != nil {
		r.freed, r.during = b, nil
		f()
		return
	}
	r.Allocator.Free(b)
}

// Free forgets a block before next may give its address to another call.
func TestScopeForgetsABlockBeforeItsFree(t *testing.T) {
	r := &reuser{Allocator: alloctest.New(t)}
	s := freehold.NewScope(r)
	b := freehold.Must(s.Alloc(8, 8))
	r.during = func() { freehold.Must(s.Alloc(8, 8)) }
	if s.Free(b); s.Live() != 1 || s.Close() != 1 {
		t.Error("the block of the second Alloc is gone")
	}
}

// A request that next refuses, or panics for, changes nothing.
func TestScopeAfterFailures(t *testing.T) {
	s := freehold.NewScope(freehold.NewLimit(alloctest.New(t), 100))
	b := freehold.Must(s.Alloc(100, 8))
	if _, err := s.Alloc(1, 1); err == nil {
		t.Error("no error")
	}
	if _, ok := s.Resize(b, 200); ok {
		t.Error("Resize beyond the limit")
	}
	wantPanic(t, "freehold: ...", func() { s.Resize(b, -1) })
	if s.Live() != 1 || s.Close() != 1 {
		t.Error("the block is gone")
	}
}

// Calls after Close panic, and so do those of a container in the scope.
func TestScopeAfterClose(t *testing.T) {
	wantPanic(t, "freehold: NewScope: next is nil", func() { freehold.NewScope(nil) })
	wantPanic(t, "freehold: Scope.Alloc: zero value: NewScope makes one", func() { new(freehold.Scope).Alloc(1, 1) })
	new(freehold.Scope).Close()

	s := freehold.NewScope(alloctest.New(t))
	b := freehold.Must(s.Alloc(8, 8))
	m := btree.New[int, int](s, nil)
	if err := m.Put(1, 1); err != nil {
		t.Fatal(err)
	}
	s.Close()
	for call, f := range map[string]func(){
		"Alloc":  func() { s.Alloc(1, 1) },
		"Zeroed": func() { s.Zeroed(1, 1) },
		"Resize": func() { s.Resize(b, 1) },
		"Free":   func() { s.Free(b) },
	} {
		wantPanic(t, "freehold: Scope."+call+": the scope is closed", f)
	}
	wantPanic(t, "freehold: btree.Map.Get: the scope is closed", func() { m.Get(1) })
}
