//go:build !freehold_debug

package hashmap

// sharedSeam is empty: see shared_debug_on.go.
type sharedSeam struct{}

func (sharedSeam) at(seamPoint) {}
