package misuse

import "github.com/freehold-go/freehold/arena"

// inShared runs a program in a shared arena, which it closes afterwards.
func inShared(f func(w *world, s *arena.Shared)) func(w *world) {
	return func(w *world) {
		s := arena.NewShared(w.a, nil)
		f(w, s)
		s.Close()
	}
}

var sharedPrograms = []program{
	{"Alloc after Close of a Shared", always(panics("the arena is closed")),
		inShared(func(w *world, s *arena.Shared) { take(s); s.Close(); take(s) }),
		inShared(func(w *world, s *arena.Shared) { take(s); s.Close() })},
	{"Free after Close of a Shared", always(panics("the arena is closed")),
		inShared(func(w *world, s *arena.Shared) { b := take(s); s.Close(); s.Free(b) }),
		inShared(func(w *world, s *arena.Shared) { b := take(s); s.Free(b); s.Close() })},
	{"Reset after Close of a Shared", always(panics("the arena is closed")),
		inShared(func(w *world, s *arena.Shared) { s.Close(); s.Reset() }),
		inShared(func(w *world, s *arena.Shared) { s.Reset(); s.Close(); s.Close() })},
	{"Close of a Shared after Close of its heap", always(panics("is closed")),
		inShared(func(w *world, s *arena.Shared) { take(s); w.heap.Close() }),
		inShared(func(w *world, s *arena.Shared) { take(s); s.Close(); w.heap.Close() })},
	{"Close of a Shared while a guard is held", always(panics("a guard is held")),
		inShared(func(w *world, s *arena.Shared) { take(s); s.Enter(); s.Close() }),
		inShared(func(w *world, s *arena.Shared) { take(s); s.Enter().Leave(); s.Close() })},
	{"Leave of the only guard twice", always(panics("the guard has left already")),
		inShared(func(w *world, s *arena.Shared) { g := s.Enter(); g.Leave(); g.Leave() }),
		inShared(func(w *world, s *arena.Shared) { g, h := s.Enter(), s.Enter(); g.Leave(); h.Leave() })},
	{"Leave of one of two guards twice", caught{},
		inShared(func(w *world, s *arena.Shared) { g, _ := s.Enter(), s.Enter(); g.Leave(); g.Leave() }),
		inShared(func(w *world, s *arena.Shared) { g, h := s.Enter(), s.Enter(); g.Leave(); h.Leave() })},
	{"free to a Shared of memory that it did not hand out", caught{},
		inShared(func(w *world, s *arena.Shared) { s.Free(make([]byte, small)) }),
		inShared(func(w *world, s *arena.Shared) { s.Free(take(s)) })},
	{"double free to a Shared", caught{},
		inShared(func(w *world, s *arena.Shared) { b := take(s); s.Free(b); s.Free(b) }),
		inShared(func(w *world, s *arena.Shared) { s.Free(take(s)) })},
	{"more than the limit of a Shared", always(refuses),
		func(w *world) {
			s := arena.NewShared(w.a, &arena.SharedOptions{MaxBytes: small})
			_, w.err = s.Alloc(small+1, 8)
		},
		func(w *world) {
			s := arena.NewShared(w.a, &arena.SharedOptions{MaxBytes: small})
			take(s)
			s.Close()
		}},
	{"read of a block of a Shared after Reset", caught{asan: sanitized},
		inShared(func(w *world, s *arena.Shared) { b := take(s); s.Reset(); w.sink = b[0] }),
		inShared(func(w *world, s *arena.Shared) {
			g := s.Enter()
			b := take(s)
			s.Reset()
			w.sink = b[0]
			g.Leave()
		})},
	{"use of a block after Reset without a guard, beside its next owner", caught{race: races},
		inShared(func(w *world, s *arena.Shared) {
			b := take(s)
			s.Reset()
			c := retake(b, func() []byte { return take(s) })
			atOnce(func() { w.look(b) }, func() { touch(c) })
		}),
		inShared(func(w *world, s *arena.Shared) {
			g := s.Enter()
			b := take(s)
			s.Reset()
			c := retake(b, func() []byte { return take(s) }) // it must not find b
			atOnce(func() { w.look(b) }, func() { touch(c) })
			g.Leave()
		})},
}
