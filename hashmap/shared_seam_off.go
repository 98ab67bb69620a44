//go:build !freehold_seams

package hashmap

// sharedSeam is empty: see shared_seam_on.go.
type sharedSeam struct{}

func (sharedSeam) at(seamPoint) {}
