package misuse

import (
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/secret"
)

// withSecret runs a program with a secret of 32 bytes in pages of its own, which it destroys
// afterwards.
func withSecret(f func(w *world, s *secret.Secret)) func(w *world) {
	return func(w *world) {
		s := freehold.Must(secret.NewStore(nil).New(make([]byte, 32)))
		defer s.Destroy()
		f(w, s)
	}
}

var secretPrograms = []program{
	{"read of a secret after its Use", always(faults),
		withSecret(func(w *world, s *secret.Secret) {
			var kept []byte
			s.Use(func(b []byte) error { kept = b; return nil })
			w.look(kept)
		}),
		withSecret(func(w *world, s *secret.Secret) { s.Use(func(b []byte) error { w.look(b); return nil }) })},
	{"write to a secret in its Use", always(faults),
		withSecret(func(w *world, s *secret.Secret) { s.Use(func(b []byte) error { b[0]++; return nil }) }),
		withSecret(func(w *world, s *secret.Secret) {
			s.Use(func(b []byte) error { c := append([]byte(nil), b...); c[0]++; return nil })
		})},
	{"read past the end of a secret", always(faults),
		withSecret(func(w *world, s *secret.Secret) {
			s.Use(func(b []byte) error { w.sink = *at(unsafe.Pointer(&b[0]), len(b)); return nil })
		}),
		withSecret(func(w *world, s *secret.Secret) {
			s.Use(func(b []byte) error { w.sink = *at(unsafe.Pointer(&b[0]), len(b)-1); return nil })
		})},
	{"Use of a secret after Destroy", always(fails("the secret is destroyed")),
		withSecret(func(w *world, s *secret.Secret) { s.Destroy(); w.err = s.Use(func([]byte) error { return nil }) }),
		withSecret(func(w *world, s *secret.Secret) { w.err = s.Use(func([]byte) error { return nil }) })},
	{"a secret of a negative size", always(panics("size -1, want 0 to")),
		func(w *world) { secret.NewStore(nil).Make(-1, func([]byte) error { return nil }) },
		func(w *world) {
			freehold.Must(secret.NewStore(nil).Make(0, func([]byte) error { return nil })).Destroy()
		}},
	{"a store that needs what does not exist", always(panics("Need 64, want 0 to 63")),
		func(w *world) { secret.NewStore(&secret.Options{Need: 64}) },
		func(w *world) { secret.NewStore(&secret.Options{Need: 0}) }},
}
