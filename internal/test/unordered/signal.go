// Package unordered forces an order of events that the race detector does not see, so it judges
// the code under test alone.
package unordered

import "runtime"

// Signal is a flag that one goroutine sets and others wait for. It orders nothing in the eyes of
// the race detector. Its zero value is not set.
type Signal struct{ is bool }

// Set sets s.
//
//go:norace
//go:noinline
func (s *Signal) Set() { s.is = true }

// IsSet reports whether s is set.
//
//go:norace
//go:noinline
func (s *Signal) IsSet() bool { return s.is }

// Wait returns once s is set.
func (s *Signal) Wait() {
	for !s.IsSet() {
		runtime.Gosched()
	}
}
