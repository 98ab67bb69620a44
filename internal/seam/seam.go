// Package seam has steps at which tests act: between two steps of a reader or a writer, a test
// runs another call, and so forces an order of the two. The tag freehold_seams turns it on.
package seam

// A Point is a step. Each package has its own.
type Point int
