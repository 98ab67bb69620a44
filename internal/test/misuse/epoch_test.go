package misuse

import (
	"github.com/freehold-go/freehold/epoch"
)

var epochPrograms = []program{
	{"Leave of a Guard twice", always(panics("the guard has left already")),
		func(w *world) { var d epoch.Domain; g := d.Enter(); g.Leave(); g.Leave() },
		func(w *world) { var d epoch.Domain; d.Enter().Leave(); d.Enter().Leave() }},
	{"Leave of a copy of a Guard that has left", always(panics("the guard has left already")),
		func(w *world) { var d epoch.Domain; g := d.Enter(); h := g; g.Leave(); h.Leave() },
		func(w *world) { var d epoch.Domain; g, h := d.Enter(), d.Enter(); g.Leave(); h.Leave() }},
	{"read after Free of a block that no Guard protects", caught{guard: guarded("use after free"), asan: sanitized},
		func(w *world) {
			var d epoch.Domain
			b := w.alloc(small)
			if d.Advance().Passed() {
				w.a.Free(b)
			}
			defer d.Enter().Leave()
			w.look(b)
		},
		func(w *world) {
			var d epoch.Domain
			b := w.alloc(small)
			g := d.Enter()
			w.look(b)
			e := d.Advance()
			g.Leave()
			if w.no = !e.Passed(); !w.no {
				w.a.Free(b)
			}
		}},
}
