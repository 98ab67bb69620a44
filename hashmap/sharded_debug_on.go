// Debug builds: tests act between two steps of a reader or writer.

//go:build freehold_debug

package hashmap

// shardedSeam calls hook at each seamPoint.
type shardedSeam struct{ hook func(seamPoint) }

func (s *shardedSeam) at(p seamPoint) {
	if s.hook != nil {
		s.hook(p)
	}
}
