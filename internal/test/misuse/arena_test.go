package misuse

import (
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
)

// poisoned: mode poison reports a write outside of the blocks, and so does -asan.
var poisoned = caught{poison: panics("was written while no block held it"), asan: sanitized}

// inArena runs a program in an arena, which it closes afterwards.
func inArena(f func(w *world, a *arena.Arena)) func(w *world) {
	return func(w *world) {
		a := arena.New(w.a, nil)
		f(w, a)
		a.Close()
	}
}

// take allocates a small block.
func take(a freehold.Allocator) []byte { return freehold.Must(a.Alloc(small, 8)) }

var arenaPrograms = []program{
	{"Alloc after Close of an arena", always(panics("the arena is closed")),
		inArena(func(w *world, a *arena.Arena) { take(a); a.Close(); take(a) }),
		inArena(func(w *world, a *arena.Arena) { take(a); a.Close() })},
	{"Free after Close of an arena", always(panics("the arena is closed")),
		inArena(func(w *world, a *arena.Arena) { b := take(a); a.Close(); a.Free(b) }),
		inArena(func(w *world, a *arena.Arena) { b := take(a); a.Free(b); a.Close() })},
	{"Reset after Close of an arena", always(panics("the arena is closed")),
		inArena(func(w *world, a *arena.Arena) { a.Close(); a.Reset() }),
		inArena(func(w *world, a *arena.Arena) { a.Reset(); a.Close(); a.Close() })},
	{"Close of an arena after Close of its heap", always(panics("is closed")),
		inArena(func(w *world, a *arena.Arena) { take(a); w.heap.Close() }),
		inArena(func(w *world, a *arena.Arena) { take(a); a.Close(); w.heap.Close() })},
	{"free of Go memory to an arena", always(panics("which this arena did not hand out")),
		inArena(func(w *world, a *arena.Arena) { take(a); a.Free(make([]byte, small)) }),
		inArena(func(w *world, a *arena.Arena) { a.Free(take(a)) })},
	{"free to an arena of a block that the built-in append has moved", always(panics("was it moved by append?")),
		inArena(func(w *world, a *arena.Arena) { a.Free(append(take(a), 1)) }),
		inArena(func(w *world, a *arena.Arena) { a.Free(append(take(a)[:small-1], 1)) })},
	{"free to an arena of a block with its length cut to 0", always(panics("0 bytes at")),
		inArena(func(w *world, a *arena.Arena) { a.Free(take(a)[:0]) }),
		inArena(func(w *world, a *arena.Arena) { a.Free(take(a)[:0][:small]) })},
	{"free of another arena's block", always(panics("which this arena did not hand out")),
		inArena(func(w *world, a *arena.Arena) { take(a); a.Free(take(arena.New(w.a, nil))) }),
		inArena(func(w *world, a *arena.Arena) { other := arena.New(w.a, nil); other.Free(take(other)); other.Close() })},
	{"free of an arena's block to its parent", always(panics("Heap.Free: 0x")),
		inArena(func(w *world, a *arena.Arena) { take(a); w.heap.Free(take(a)) }),
		inArena(func(w *world, a *arena.Arena) { take(a); a.Free(take(a)) })},
	{"double free of an arena's newest block", always(panics("a block that has ended")),
		inArena(func(w *world, a *arena.Arena) { take(a); b := take(a); a.Free(b); a.Free(b) }),
		inArena(func(w *world, a *arena.Arena) { take(a); b := take(a); a.Free(b) })},
	{"double free of a block among others", caught{},
		inArena(func(w *world, a *arena.Arena) { b := take(a); take(a); a.Free(b); a.Free(b) }),
		inArena(func(w *world, a *arena.Arena) { b := take(a); take(a); a.Free(b) })},
	{"one Free more than there are blocks", always(panics("no block is live")),
		inArena(func(w *world, a *arena.Arena) { b, c := take(a), take(a); a.Free(b); a.Free(b); a.Free(c) }),
		inArena(func(w *world, a *arena.Arena) { b, c := take(a), take(a); a.Free(b); a.Free(c) })},
	{"free of an arena's block after Reset", always(panics("100 bytes at")),
		inArena(func(w *world, a *arena.Arena) { b := take(a); a.Reset(); a.Free(b) }),
		inArena(func(w *world, a *arena.Arena) { b := take(a); a.Free(b); a.Reset() })},
	{"write to an arena's block after Reset", poisoned,
		inArena(func(w *world, a *arena.Arena) { b := take(a); a.Reset(); b[0] = 1; take(a) }),
		inArena(func(w *world, a *arena.Arena) { b := take(a); b[0] = 1; a.Reset(); take(a) })},
	{"write to an arena's block after Rewind", poisoned,
		inArena(func(w *world, a *arena.Arena) { m := a.Mark(); b := take(a); a.Rewind(m); b[0] = 1; take(a) }),
		inArena(func(w *world, a *arena.Arena) { b := take(a); a.Rewind(a.Mark()); b[0] = 1; take(a) })},
	{"write to an arena's newest block after Free", poisoned,
		inArena(func(w *world, a *arena.Arena) { b := take(a); a.Free(b); b[0] = 1; take(a) }),
		inArena(func(w *world, a *arena.Arena) { b := take(a); b[0] = 1; a.Free(b); take(a) })},
	{"read of an arena's block after Reset", caught{asan: sanitized},
		inArena(func(w *world, a *arena.Arena) { b := take(a); a.Reset(); w.sink = b[0] }),
		inArena(func(w *world, a *arena.Arena) { b := take(a); w.sink = b[0]; a.Reset() })},
	{"read of an arena's block after Close", caught{guard: guarded("use after free"), asan: sanitized},
		inArena(func(w *world, a *arena.Arena) { b := take(a); a.Close(); w.sink = b[0] }),
		inArena(func(w *world, a *arena.Arena) { b := take(a); w.sink = b[0]; a.Close() })},
	{"write past the end of an arena's newest block", poisoned,
		inArena(func(w *world, a *arena.Arena) { *at(unsafe.Pointer(&take(a)[0]), small) = 1; take(a) }),
		inArena(func(w *world, a *arena.Arena) { *at(unsafe.Pointer(&take(a)[0]), small-1) = 1; take(a) })},
	{"write past the end of an arena's block, into the next", caught{},
		inArena(func(w *world, a *arena.Arena) { b := take(a); take(a); *at(unsafe.Pointer(&b[0]), 104) = 1 }),
		inArena(func(w *world, a *arena.Arena) { b := take(a); take(a); *at(unsafe.Pointer(&b[0]), 99) = 1 })},
	{"Rewind to a mark after Rewind to an older one", always(panics("a Rewind to an older one, or a Reset, has ended")),
		inArena(func(w *world, a *arena.Arena) { old := a.Mark(); take(a); m := a.Mark(); a.Rewind(old); a.Rewind(m) }),
		inArena(func(w *world, a *arena.Arena) { old := a.Mark(); take(a); m := a.Mark(); a.Rewind(m); a.Rewind(old) })},
	{"Rewind to a mark after Reset", always(panics("a Rewind to an older one, or a Reset, has ended")),
		inArena(func(w *world, a *arena.Arena) { m := a.Mark(); a.Reset(); a.Rewind(m) }),
		inArena(func(w *world, a *arena.Arena) { a.Reset(); m := a.Mark(); a.Rewind(m); a.Rewind(m) })},
	{"Rewind to a mark of another arena", always(panics("a mark of another arena")),
		inArena(func(w *world, a *arena.Arena) { a.Rewind(arena.New(w.a, nil).Mark()) }),
		inArena(func(w *world, a *arena.Arena) { a.Rewind(a.Mark()) })},
	{"Rewind to no mark", always(panics("a mark of another arena")),
		inArena(func(w *world, a *arena.Arena) { a.Rewind(arena.Mark{}) }),
		inArena(func(w *world, a *arena.Arena) { a.Rewind(a.Mark()) })},
	{"more than an arena's limit", always(refuses),
		func(w *world) { _, w.err = arena.New(w.a, &arena.Options{MaxBytes: small}).Alloc(small+1, 8) },
		func(w *world) { a := arena.New(w.a, &arena.Options{MaxBytes: small}); take(a); a.Close() }},
	{"an arena that is never closed", caught{leak: leaks("arena.Arena dropped without Close")}.andInTests(reports("leak of")),
		func(w *world) { take(arena.New(w.a, nil)) },
		func(w *world) { a := arena.New(w.a, nil); take(a); a.Close() }},
	{"use of an arena by two goroutines", caught{race: races},
		inArena(func(w *world, a *arena.Arena) { atOnce(func() { take(a) }, func() { take(a) }) }),
		inArena(func(w *world, a *arena.Arena) { atOnce(func() { take(a) }, func() {}) })},
	{"Put of an arena into another Recycler", always(panics("did not come from this Recycler")),
		func(w *world) {
			arena.NewRecycler(w.a, nil).Put(freehold.Must(arena.NewRecycler(w.a, nil).Get(0)))
		},
		recycled},
	{"Put of an arena that New made", always(panics("did not come from this Recycler")),
		func(w *world) { arena.NewRecycler(w.a, nil).Put(arena.New(w.a, nil)) }, recycled},
	{"Put of an arena twice", always(panics("was put into its Recycler")),
		func(w *world) {
			r := arena.NewRecycler(w.a, nil)
			defer r.Close()
			a := freehold.Must(r.Get(0))
			r.Put(a)
			r.Put(a)
		},
		recycled},
	{"Alloc from an arena after Put", always(panics("was put into its Recycler")),
		func(w *world) {
			r := arena.NewRecycler(w.a, nil)
			defer r.Close()
			a := freehold.Must(r.Get(0))
			take(a)
			r.Put(a)
			take(a)
		},
		recycled},
	{"Close of an arena after Put", always(panics("was put into its Recycler")),
		func(w *world) {
			r := arena.NewRecycler(w.a, nil)
			defer r.Close()
			a := freehold.Must(r.Get(0))
			r.Put(a)
			a.Close()
		},
		recycled},
	{"Close of a Recycler after Close of its heap", always(panics("is closed")),
		func(w *world) {
			r := arena.NewRecycler(w.heap, &arena.RecyclerOptions{Decay: -1})
			r.Put(freehold.Must(r.Get(1000)))
			w.heap.Close()
			r.Close()
		},
		recycled},
	{"Get from a Recycler after Close", always(panics("closed")),
		func(w *world) { r := arena.NewRecycler(w.a, nil); r.Close(); r.Get(0) }, recycled},
}

// recycled gets an arena from a Recycler twice.
func recycled(w *world) {
	r := arena.NewRecycler(w.a, nil)
	for range 2 {
		a := freehold.Must(r.Get(1000))
		take(a)
		r.Put(a)
	}
	r.Close()
}
