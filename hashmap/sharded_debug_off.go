//go:build !freehold_debug

package hashmap

// shardedSeam is empty: see sharded_debug_on.go.
type shardedSeam struct{}

func (shardedSeam) at(seamPoint) {}
