package measure

// Random is the state of a generator of random numbers, xorshift64*, the same in C and Go. It
// must not be 0.
type Random uint64

// Seed returns a generator for one goroutine.
func Seed(goroutine int) Random { return Random(0x9E3779B97F4A7C15 * uint64(goroutine+1)) }

// Next returns the next number.
func (r *Random) Next() uint64 {
	x := uint64(*r)
	x ^= x >> 12
	x ^= x << 25
	x ^= x >> 27
	*r = Random(x)
	return x * 2685821657736338717
}

// One number holds two choices: its upper half a number below n, its lower half one of span
// numbers from least on.

// Below returns the choice of the upper half.
func Below(x, n uint64) uint64 { return (x >> 32) * n >> 32 }

// From returns the choice of the lower half.
func From(x, least, span uint64) uint64 { return least + (x&(1<<32-1))*span>>32 }
