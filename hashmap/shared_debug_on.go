// Debug builds: tests act between two steps of a reader or writer.

//go:build freehold_debug

package hashmap

// sharedSeam calls hook at each seamPoint.
type sharedSeam struct{ hook func(seamPoint) }

func (s *sharedSeam) at(p seamPoint) {
	if s.hook != nil {
		s.hook(p)
	}
}
