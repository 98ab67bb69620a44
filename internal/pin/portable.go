// Pin without the runtime: each place has a lock.
//
// A goroutine prefers the place that the address of its stack frame points at,
// and takes another where that one is held. A call at another depth may prefer
// another place. Slower than pin.go, but plain Go, and the race detector
// understands it.

//go:build race || freehold_portable

// Package pin gives goroutines places: see pin.go.
package pin

import (
	"sync"
	"unsafe"
)

// Max is how many places there are.
const Max = 1 << placeBits

const placeBits = 5

// Places are the places of one table; the zero value is ready.
type Places struct{ places [Max]place }

type place struct {
	mu sync.Mutex
	_  [64 - unsafe.Sizeof(sync.Mutex{})]byte // a cache line each
}

// Enter returns the place that the goroutine holds until Leave.
func (p *Places) Enter() int { return p.EnterAt(int(Stripe(placeBits))) }

// EnterAt is Enter, which prefers the given place.
func (p *Places) EnterAt(first int) int {
	for i := range Max {
		at := (first + i) % Max
		if p.places[at].mu.TryLock() {
			return at
		}
	}
	p.places[first].mu.Lock()
	return first
}

// Leave ends what Enter began.
func (p *Places) Leave(place int) { p.places[place].mu.Unlock() }

// All calls f, which then holds all places.
func (p *Places) All(f func()) {
	for i := range p.places {
		p.places[i].mu.Lock()
	}
	f()
	for i := range p.places {
		p.places[i].mu.Unlock()
	}
}

// Each calls f for every place, which f then holds.
func (p *Places) Each(f func(place int)) {
	for i := range p.places {
		p.places[i].mu.Lock()
		f(i)
		p.places[i].mu.Unlock()
	}
}

func (p *Places) wait() {
	for i := range p.places {
		p.places[i].mu.Lock()
		p.places[i].mu.Unlock()
	}
}
