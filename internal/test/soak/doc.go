// Package soak runs long random programs on every allocator. Each must answer correctly, and all
// must return the same bytes.
package soak
