// Package soak runs long random programs on every allocator: each must answer
// rightly, and all of them must give the same bytes.
package soak
