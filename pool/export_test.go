package pool

import "unsafe"

func (b *Blocks) get() (unsafe.Pointer, error) { return plain.get(b, 0, 0, 0, 0) }
func (b *Blocks) put(p unsafe.Pointer)         { plain.put(b, p, 0, 0, 0) }

// TakeAtOnce makes the block at p live, as after a racing double free: this goroutine freed
// it, and another one freed it at the same moment and got it again.
func (b *Blocks) TakeAtOnce(p unsafe.Pointer) { b.statusOf(uintptr(p)).store(statusLive) }

// FreeAtOnce makes the live block at p the next block of every stack, as after two
// goroutines have freed it at the same moment and one of them got it again.
func (b *Blocks) FreeAtOnce(p unsafe.Pointer) {
	b.addStacks()
	b.stacks.Each(func(s *stack) {
		n := s.n.load()
		s.entries[n] = entry{uintptr(p), uintptr(unsafe.Pointer(b.statusOf(uintptr(p))))}
		s.n.store(n + 1)
	})
}

// addStacks gives every slot a stack.
func (b *Blocks) addStacks() {
	for i := range b.stacks.Len() {
		b.addStack(i)
	}
}

// CentralFree returns the number of blocks on the central free list. Only an exchange with
// it changes that.
func (b *Blocks) CentralFree() (n int) {
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	for _, c := range b.central.chunks {
		n += c.freeBlocks
	}
	return n
}

// CacheNumbers returns how many numbers there are for caches.
func (b *Blocks) CacheNumbers() int { return len(*b.caches.Load()) }

// Blocks returns the Blocks of the pool.
func (p *Pool[T]) Blocks() *Blocks { return &p.blocks }

// HandleAt returns a handle to the value at t with a generation that it never has.
func HandleAt[T any](t *T) Handle[T] {
	return Handle[T]{addr: uintptr(unsafe.Pointer(t)), gen: 1 << 62}
}

// Plain has pools use functions in Go until restore is called, with pins or as package pin can.
func Plain(pins bool) (restore func()) {
	was := fast
	fast = plain
	if pins {
		fast = pinned
	}
	return func() { fast = was }
}
