package misuse

import (
	"strings"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/intern"
)

// inStrings runs a program with a set of strings, which it closes afterwards.
func inStrings(f func(w *world, s *intern.Strings)) func(w *world) {
	return func(w *world) {
		s := intern.New(w.a, nil)
		f(w, s)
		s.Close()
	}
}

// inCounted runs a program with a reference-counted set of strings, which it closes afterwards.
func inCounted(f func(w *world, s *intern.Strings)) func(w *world) {
	return func(w *world) {
		s := intern.New(w.a, &intern.Options{RefCounts: true})
		f(w, s)
		s.Close()
	}
}

// inSharedStrings runs a program with a set of strings for several goroutines, which it closes
// afterwards.
func inSharedStrings(f func(w *world, s *intern.Shared)) func(w *world) {
	return func(w *world) {
		s := intern.NewShared(w.a, nil)
		f(w, s)
		s.Close()
	}
}

// enter interns a string.
func enter(s *intern.Strings, v string) intern.ID { return freehold.Must(s.Intern(v)) }

// long is a string with a block of its own.
var long = strings.Repeat("long ", 100)

// numbers interns 100 strings.
func numbers(s interface {
	Intern(v string) (intern.ID, error)
}) {
	for i := range 100 {
		freehold.Must(s.Intern(long[:i]))
	}
}

var internPrograms = []program{
	{"Intern after Close of Strings", always(panics("the strings are closed")),
		inStrings(func(w *world, s *intern.Strings) { numbers(s); s.Close(); s.Intern("new") }),
		inStrings(func(w *world, s *intern.Strings) { numbers(s); s.Intern("new"); s.Close() })},
	{"Value after Close of Strings", always(panics("the strings are closed")),
		inStrings(func(w *world, s *intern.Strings) { id := enter(s, "text"); s.Close(); s.Value(id) }),
		inStrings(func(w *world, s *intern.Strings) { s.Value(enter(s, "text")); s.Close() })},
	{"Close of Strings after Close of their heap", always(panics("is closed")),
		inStrings(func(w *world, s *intern.Strings) { numbers(s); w.heap.Close() }),
		inStrings(func(w *world, s *intern.Strings) { numbers(s); s.Close(); w.heap.Close() })},
	{"Value of an ID of other Strings, which these do not have", always(panics("no string has the ID")),
		inStrings(func(w *world, s *intern.Strings) {
			other := intern.New(w.a, nil)
			defer other.Close()
			numbers(other)
			s.Value(enter(other, "last"))
		}),
		inStrings(func(w *world, s *intern.Strings) { numbers(s); s.Value(enter(s, "last")) })},
	{"Release without Options.RefCounts", always(panics("references are not counted")),
		inStrings(func(w *world, s *intern.Strings) { s.Release(enter(s, "text")) }),
		inCounted(func(w *world, s *intern.Strings) { s.Release(enter(s, "text")) })},
	{"Release twice", always(panics("was released")),
		inCounted(func(w *world, s *intern.Strings) { id := enter(s, "text"); s.Release(id); s.Release(id) }),
		inCounted(func(w *world, s *intern.Strings) {
			id := enter(s, "text")
			s.Retain(id)
			s.Release(id)
			s.Release(id)
		})},
	{"Value of an ID after its Release", always(panics("was released")),
		inCounted(func(w *world, s *intern.Strings) { id := enter(s, "text"); s.Release(id); s.Value(id) }),
		inCounted(func(w *world, s *intern.Strings) { id := enter(s, "text"); s.Value(id); s.Release(id) })},
	{"Value of an ID that is another string's by now", caught{},
		inCounted(func(w *world, s *intern.Strings) {
			id := enter(s, "text")
			s.Release(id)
			enter(s, "next")
			s.Value(id)
		}),
		inCounted(func(w *world, s *intern.Strings) { s.Release(enter(s, "text")); s.Value(enter(s, "next")) })},
	{"read of a string of Value after its Release", caught{},
		inCounted(func(w *world, s *intern.Strings) {
			id := enter(s, "text")
			v := s.Value(id)
			s.Release(id)
			w.sink = v[0]
		}),
		inCounted(func(w *world, s *intern.Strings) {
			id := enter(s, "text")
			w.sink = s.Value(id)[0]
			s.Release(id)
		})},
	{"write to a string of Value after its Release, and an Intern", caught{poison: panics("was written after the string was freed")},
		inCounted(func(w *world, s *intern.Strings) {
			id := enter(s, "some text")
			v := s.Value(id)
			s.Release(id)
			*unsafe.StringData(v[2:]) = 'T'
			enter(s, "next text")
		}),
		inCounted(func(w *world, s *intern.Strings) { s.Release(enter(s, "some text")); enter(s, "next text") })},
	{"read of a string of more than 247 bytes after its Release", caught{guard: guarded("use after free")},
		inCounted(func(w *world, s *intern.Strings) {
			id := enter(s, long)
			v := s.Value(id)
			s.Release(id)
			w.sink = v[0]
		}),
		inCounted(func(w *world, s *intern.Strings) {
			id := enter(s, long)
			w.sink = s.Value(id)[0]
			s.Release(id)
		})},
	{"read of a string of Value after Close of its Strings", caught{guard: guarded("use after free")},
		inStrings(func(w *world, s *intern.Strings) { v := s.Value(enter(s, "text")); s.Close(); w.sink = v[0] }),
		inStrings(func(w *world, s *intern.Strings) { v := s.Value(enter(s, "text")); w.sink = v[0]; s.Close() })},
	{"Strings that are never closed", caught{leak: leaks("intern.Strings dropped without Close")}.andInTests(reports("leak of")),
		func(w *world) { s := intern.New(w.a, nil); enter(s, "text") },
		func(w *world) { s := intern.New(w.a, nil); enter(s, "text"); s.Close() }},
	{"Intern into Strings by two goroutines", caught{race: races},
		inStrings(func(w *world, s *intern.Strings) { atOnce(func() { numbers(s) }, func() { numbers(s) }) }),
		inSharedStrings(func(w *world, s *intern.Shared) { atOnce(func() { numbers(s) }, func() { numbers(s) }) })},
	{"Intern after Close of a set for any goroutine", always(panics("the strings are closed")),
		inSharedStrings(func(w *world, s *intern.Shared) { numbers(s); s.Close(); s.Intern("new") }),
		inSharedStrings(func(w *world, s *intern.Shared) { numbers(s); s.Intern("new"); s.Close() })},
	{"a set of strings for any goroutine that is never closed", caught{leak: leaks("intern.Shared dropped without Close")}.andInTests(reports("leak of")),
		func(w *world) { s := intern.NewShared(w.a, nil); s.Intern("text") },
		func(w *world) { s := intern.NewShared(w.a, nil); s.Intern("text"); s.Close() }},
}
