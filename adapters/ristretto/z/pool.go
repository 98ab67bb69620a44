// Pool: Allocators between two uses.

package z

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	keptBytes = 400 << 20       // in an idle Allocator, at most
	idleTime  = 2 * time.Second // until an idle Allocator is released
)

// AllocatorPool keeps idle Allocators. It is safe for concurrent use. A nil AllocatorPool keeps
// none.
type AllocatorPool struct {
	max int // idle ones

	mu     sync.Mutex
	idle   []*Allocator
	used   bool // since the last tick
	timer  *time.Timer
	closed bool
}

// NewAllocatorPool returns a pool of at most sz idle Allocators. It releases one every two seconds
// in which Get was not called. Release ends it.
func NewAllocatorPool(sz int) *AllocatorPool {
	p := &AllocatorPool{max: sz}
	p.mu.Lock() // tick waits for timer
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(idleTime, p.tick)
	return p
}

// Get returns an idle Allocator, or a new one if there is none. Return gives it back.
func (p *AllocatorPool) Get(sz int, tag string) *Allocator {
	if a := p.pop(true); a != nil {
		a.list(tag)
		return a
	}
	return NewAllocator(sz, tag)
}

// Return ends all blocks of an Allocator and keeps it, with at most 400 MiB of its memory. It
// releases the Allocator if the pool is full or released. It panics if the pool has it already.
func (p *AllocatorPool) Return(a *Allocator) {
	if a == nil {
		return
	}
	if p != nil {
		a.TrimTo(keptBytes)
	}
	if !p.push(a) {
		a.Release()
	}
}

func (p *AllocatorPool) push(a *Allocator) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Contains(p.idle, a) {
		panic(fmt.Sprintf("freehold: z.AllocatorPool.Return: Allocator %x is in the pool already", a.Ref))
	}
	if p.closed || len(p.idle) >= p.max {
		return false
	}
	p.idle = append(p.idle, a)
	return true
}

// pop removes an idle Allocator, for a Get or because there was none.
func (p *AllocatorPool) pop(get bool) *Allocator {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	keep := !get && p.used
	p.used = get
	if keep || len(p.idle) == 0 {
		return nil
	}
	a := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	return a
}

func (p *AllocatorPool) tick() {
	p.pop(false).Release()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.timer.Reset(idleTime)
	}
}

// Release releases the idle Allocators, and later each Allocator that is returned.
func (p *AllocatorPool) Release() {
	if p == nil {
		return
	}
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.timer.Stop()
	p.mu.Unlock()
	for _, a := range idle {
		a.Release()
	}
}
