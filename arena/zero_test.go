package arena

import (
	"testing"

	"github.com/freehold-go/freehold"
)

// TestZeroValues: the panic of a zero arena names its constructor.
func TestZeroValues(t *testing.T) {
	var a Arena
	calls := callsOf(&a, make([]byte, 8), Mark{})
	calls["Arena.Close"] = a.Close
	for call, use := range calls {
		wantPanic(t, "freehold: arena."+call+": zero value: arena.New makes an Arena", use)
	}
	if b := make([]byte, 8); a.Owns(b) || a.Live() != 0 || a.Stats() != (Stats{}) {
		t.Errorf("owns %t, %+v", a.Owns(b), a.Stats())
	}

	var s Shared
	for call, use := range map[string]func(){
		"Alloc":   func() { s.Alloc(8, 8) },
		"Zeroed":  func() { s.Zeroed(8, 8) },
		"Resize":  func() { s.Resize(make([]byte, 8), 4) },
		"Free":    func() { s.Free(make([]byte, 8)) },
		"Reserve": func() { s.Reserve(0) },
		"Enter":   func() { s.Enter() },
		"Reset":   s.Reset,
		"Trim":    s.Trim,
	} {
		wantPanic(t, "freehold: arena.Shared."+call+": zero value: arena.NewShared makes a Shared", use)
	}
	if b := make([]byte, 8); s.Owns(b) || s.Live() != 0 || s.Stats() != (SharedStats{}) {
		t.Errorf("owns %t, %+v", s.Owns(b), s.Stats())
	}
	s.Close()

	var r Recycler
	wantPanic(t, "freehold: arena.Recycler.Get: zero value: arena.NewRecycler makes a Recycler", func() { r.Get(0) })
	r.Close()
}

func TestNilParents(t *testing.T) {
	wantPanic(t, "freehold: arena.New: parent is nil", func() { New(nil, nil) })
	wantPanic(t, "freehold: arena.Recycler.Put: a is nil", func() { NewRecycler(freehold.Pages(), nil).Put(nil) })
	wantPanic(t, "freehold: arena.NewShared: parent is nil", func() { NewShared(nil, nil) })
	wantPanic(t, "freehold: arena.NewRecycler: parent is nil", func() { NewRecycler(nil, nil) })
	wantPanic(t, "freehold: arena.NewRecycler: RecyclerOptions.MaxArenaBytes -1, want 0 or more", func() {
		NewRecycler(freehold.Pages(), &RecyclerOptions{MaxArenaBytes: -1})
	})
}
