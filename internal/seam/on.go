//go:build freehold_seams

package seam

// On tells whether the tag is set.
const On = true

// Seam calls Hook at each Point. The zero value has none.
type Seam struct{ Hook func(Point) }

// At is called by the code under test when it has come to p.
func (s *Seam) At(p Point) {
	if s.Hook != nil {
		s.Hook(p)
	}
}

// Once calls hook when p is reached for the nth time, and removes it before.
func (s *Seam) Once(p Point, nth int, hook func()) {
	s.Hook = func(q Point) {
		if q != p {
			return
		}
		if nth--; nth == 0 {
			s.Hook = nil
			hook()
		}
	}
}
