//go:build !freehold_seams

package cache

// seam is empty: see seam_on.go.
type seam struct{}

func (seam) at(seamPoint) {}
