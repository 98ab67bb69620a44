package arena

import (
	"strings"
	"sync"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

func TestRegistryFindsItsArenas(t *testing.T) {
	var r, other Registry
	if _, ok := r.Find(1 << slotBits); ok || r.Len() != 0 {
		t.Error("an empty registry finds an arena")
	}
	ids := map[ID]*Arena{}
	for range 100 {
		a := New(alloctest.New(t), nil)
		id := r.Add("a", a)
		if _, ok := ids[id]; ok || id == 0 {
			t.Fatalf("id %x", id)
		}
		ids[id] = a
	}
	for id, want := range ids {
		if a, ok := r.Find(id); !ok || a != want {
			t.Errorf("Find(%x): %p, %t, want %p", id, a, ok, want)
		}
	}
	stranger := New(alloctest.New(t), nil)
	strange := other.Add("b", stranger)
	for _, id := range []ID{0, 1, maxMembers - 1, ^ID(0), strange} {
		if a, ok := r.Find(id); ok || a != nil {
			t.Errorf("Find(%x): %p, %t", id, a, ok)
		}
		if r.Remove(id) {
			t.Errorf("Remove(%x)", id)
		}
	}
	stranger.Close()

	var stale []ID
	for id, a := range ids {
		if len(stale)%2 == 0 {
			if !r.Remove(id) || r.Remove(id) {
				t.Error("Remove is not once")
			}
		}
		a.Close()
		stale = append(stale, id)
	}
	if r.Len() != 0 {
		t.Errorf("%d arenas", r.Len())
	}
	for range 100 { // in the same slots
		a := New(alloctest.New(t), nil)
		defer a.Close()
		r.Add("c", a)
	}
	for _, id := range stale {
		if _, ok := r.Find(id); ok || r.Remove(id) {
			t.Errorf("Find(%x) of a closed arena", id)
		}
	}
}

func TestAddOfAnArenaThatIsInARegistry(t *testing.T) {
	var r, other Registry
	a := New(alloctest.New(t), nil)
	defer a.Close()
	id := r.Add("first", a)
	wantPanic(t, `freehold: arena.Registry.Add: the arena is in a registry already, as "first"`, func() { other.Add("second", a) })
	r.Remove(id)
	if again := other.Add("second", a); again == id {
		t.Error("an id is used again")
	}
}

func TestSummary(t *testing.T) {
	var r Registry
	small, large := New(alloctest.New(t), nil), New(alloctest.New(t), nil)
	defer small.Close()
	freehold.Must(small.Alloc(100, 1))
	x := r.Add("small", small)
	r.Add("large", large)
	freehold.Must(large.Alloc(1<<20, 1))
	got := r.Summary()
	lines := strings.Split(got, "\n")
	if len(lines) != 5 || !strings.HasSuffix(lines[1], "     1048576      1048576  \"large\"") ||
		!strings.HasSuffix(lines[2], "         100         4096  \"small\"") ||
		!strings.HasSuffix(lines[3], "           total      1048676      1052672  2 arenas") {
		t.Error(got)
	}
	large.Close()
	if got := r.Summary(); !strings.Contains(got, "  1 arena\n") {
		t.Error(got)
	}
	r.Remove(x)
	if got := r.Summary(); strings.Contains(got, "small") || strings.Contains(got, "large") {
		t.Error(got)
	}
	r.Add("a\nb", small) // still one line
	if got := r.Summary(); strings.Count(got, "\n") != 3 || !strings.Contains(got, `  "a\nb"`+"\n") {
		t.Error(got)
	}
}

// TestRegistryConcurrently: Find returns an arena or nothing during Add and
// Remove.
func TestRegistryConcurrently(t *testing.T) {
	rounds := 2000
	if testing.Short() {
		rounds = 200
	}
	var r Registry
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	var wg sync.WaitGroup
	ids := make(chan ID, 64)
	for range 3 {
		wg.Go(func() {
			for range rounds {
				a := New(heap, nil)
				id := r.Add("arena", a)
				freehold.Must(a.Alloc(64, 8))
				select {
				case ids <- id:
				default:
				}
				if found, ok := r.Find(id); !ok || found != a {
					t.Errorf("Find of a live arena: %t", ok)
				}
				a.Close()
				if _, ok := r.Find(id); ok {
					t.Error("Find of a closed arena")
				}
			}
		})
	}
	var finders sync.WaitGroup
	finders.Go(func() {
		for id := range ids {
			if a, ok := r.Find(id); ok && a == nil {
				t.Error("found nil")
			}
			_ = r.Summary()
		}
	})
	wg.Wait()
	close(ids)
	finders.Wait()
	if r.Len() != 0 {
		t.Errorf("%d arenas left", r.Len())
	}
}

func TestRegistryTakesSharedArenas(t *testing.T) {
	var r Registry
	a := New(alloctest.New(t), nil)
	defer a.Close()
	s := newSharedOver(t, alloctest.New(t), &SharedOptions{ChunkBytes: 8192})
	freehold.Must(s.Alloc(100, 8))
	own, shared := r.Add("own", a), r.AddShared("shared", s)
	if found, ok := r.FindShared(shared); !ok || found != s {
		t.Errorf("FindShared: %p, %t, want %p", found, ok, s)
	}
	if found, ok := r.Find(shared); ok || found != nil {
		t.Errorf("Find of a Shared: %p, %t", found, ok)
	}
	if found, ok := r.FindShared(own); ok || found != nil {
		t.Errorf("FindShared of an Arena: %p, %t", found, ok)
	}
	wantPanic(t, `freehold: arena.Registry.AddShared: the arena is in a registry already, as "shared"`, func() { r.AddShared("again", s) })
	if got := r.Summary(); r.Len() != 2 || !strings.Contains(got, "        8192         8192  \"shared\"\n") || !strings.Contains(got, " 8192  2 arenas") {
		t.Errorf("%d arenas: %s", r.Len(), got)
	}
	s.Reset()
	s.Stats() // takes the chunk from its processor
	if got := r.Summary(); !strings.Contains(got, "           0         8192  \"shared\"\n") {
		t.Errorf("after Reset: %s", got)
	}
	if !r.Remove(shared) || r.Remove(shared) {
		t.Error("Remove is not once")
	}
	again := r.AddShared("shared", s)
	s.Close()
	if _, ok := r.FindShared(again); ok || again == shared || r.Len() != 1 {
		t.Errorf("a closed arena is found: %t; %d arenas", ok, r.Len())
	}
	wantPanic(t, "freehold: arena.Registry.AddShared: the arena is closed", func() { r.AddShared("closed", s) })
}

// TestRemoveAndCloseOfASharedMeet: a concurrent Remove and Close free the slot once.
func TestRemoveAndCloseOfASharedMeet(t *testing.T) {
	var r Registry
	s := newSharedOver(t, alloctest.New(t), nil)
	id := r.AddShared("shared", s)
	m := r.find(id) // a Remove begins; a Close overtakes it
	s.Close()
	s.forget(m)
	if m.end() {
		t.Error("Remove reports an arena that Close took out before")
	}
	if r.Len() != 0 {
		t.Errorf("%d arenas in an empty registry", r.Len())
	}
	for range 2 {
		a := New(alloctest.New(t), nil)
		defer a.Close()
		r.Add("a", a)
	}
	if r.Len() != 2 {
		t.Errorf("%d arenas of 2", r.Len())
	}
}

func TestReserveAndTrimTellTheRegistry(t *testing.T) {
	var r Registry
	a := New(alloctest.New(t), nil)
	defer a.Close()
	r.Add("a", a)
	if err := a.Reserve(100); err != nil {
		t.Fatal(err)
	}
	if _, reserved := a.member.figures(); reserved != defaultChunkBytes {
		t.Errorf("%d bytes in a chunk of %d", reserved, defaultChunkBytes)
	}
	freehold.Must(a.Alloc(100, 8))
	a.Reset()
	a.Trim()
	if used, reserved := a.member.figures(); used != 0 || reserved != 0 {
		t.Errorf("%d of %d bytes in an arena that holds none", used, reserved)
	}
}
