// Package random generates the numbers of the loads: xorshift64*, the same in C and
// Go.
package random

// State is the state of a generator. It must not be 0.
type State uint64

// Next returns the next number.
func (s *State) Next() uint64 {
	x := uint64(*s)
	x ^= x >> 12
	x ^= x << 25
	x ^= x >> 27
	*s = State(x)
	return x * 2685821657736338717
}
