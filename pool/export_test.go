package pool

import "unsafe"

// TakeAtOnce does to the block at p what is left when another goroutine found
// it live too while this one put it back, freed it, and got it again.
func (b *Blocks) TakeAtOnce(p unsafe.Pointer) { b.stateOf(uintptr(p)).store(stateLive) }

// CentralFree returns how many blocks the central has. Only an exchange with it
// changes that.
func (b *Blocks) CentralFree() (n int) {
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	for _, c := range b.central.chunks {
		n += c.freeBlocks
	}
	return n
}

// Blocks returns the blocks that the pool's values are.
func (p *Pool[T]) Blocks() *Blocks { return &p.blocks }
