//go:build freehold_seams

package hashmap

// sharedSeam calls hook at each seamPoint.
type sharedSeam struct{ hook func(seamPoint) }

func (s *sharedSeam) at(p seamPoint) {
	if s.hook != nil {
		s.hook(p)
	}
}
