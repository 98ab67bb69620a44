// Random: xorshift64*, the same numbers in C and Go.

package main

// random is the state of one thread's generator, never zero.
type random uint64

func seed(thread int) random { return random(0x9E3779B97F4A7C15 * uint64(thread+1)) }

func (r *random) next() uint64 {
	x := uint64(*r)
	x ^= x >> 12
	x ^= x << 25
	x ^= x >> 27
	*r = random(x)
	return x * 2685821657736338717
}

// One number holds both choices: its upper half the slot, its lower the size.
func slotOf(x, slots uint64) uint64     { return (x >> 32) * slots >> 32 }
func sizeOf(x, min, span uint64) uint64 { return min + (x&(1<<32-1))*span>>32 }
