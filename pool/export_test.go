package pool

import "unsafe"

// TakeAtOnce does to the block at p what is left when another goroutine found
// it live too while this one put it back, freed it, and got it again.
func (b *Blocks) TakeAtOnce(p unsafe.Pointer) { b.stateOf(uintptr(p)).store(stateLive) }
