// Random: the choices of one thread.

package main

import "github.com/freehold-go/freehold/lab/bench/random"

// seed returns a generator for one thread.
func seed(thread int) random.State { return random.State(0x9E3779B97F4A7C15 * uint64(thread+1)) }

// One number holds both choices: its upper half the slot, its lower the size.
func slotOf(x, slots uint64) uint64     { return (x >> 32) * slots >> 32 }
func sizeOf(x, min, span uint64) uint64 { return min + (x&(1<<32-1))*span>>32 }
