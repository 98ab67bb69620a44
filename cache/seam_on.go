//go:build freehold_seams

package cache

// seam calls hook at each seamPoint.
type seam struct{ hook func(seamPoint) }

func (s *seam) at(p seamPoint) {
	if s.hook != nil {
		s.hook(p)
	}
}
