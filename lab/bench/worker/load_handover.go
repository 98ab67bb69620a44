// Handover: one thread allocates, another frees.
//
// Blocks travel in batches of 256 through a ring of 16, so that the hand-over
// itself costs little; the peer "loop" shows how little. With -read the
// consumer looks at each block's first byte, as a consumer would: then every
// allocator's blocks cross from one processor's cache to the other's, and the
// allocators look more alike.

package main

import (
	"errors"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	ringSlots  = 16
	batchSize  = 256
	spinRounds = 1000 // before giving the processor away
)

// A ring has one producer, which alone writes head, and one consumer, which
// alone writes tail; head - tail batches are full.
type ring struct {
	head atomic.Uint64
	_    [120]byte
	tail atomic.Uint64
	_    [120]byte
	done atomic.Bool
	_    [124]byte

	batches [ringSlots][batchSize]block
}

func runHandover(p *params) result {
	r := &ring{}
	freed := make(chan struct{})
	go func() { r.consume(p.read); close(freed) }()
	result := r.produce(p)
	r.done.Store(true)
	<-freed
	return result
}

func (r *ring) produce(p *params) (res result) {
	rnd, min, span := seed(0), uint64(p.min), uint64(p.max-p.min+1)
	batch := func() {
		head := r.head.Load()
		for spins := 0; head-r.tail.Load() == ringSlots; spins++ {
			if spins >= spinRounds {
				runtime.Gosched()
			}
		}
		blocks := &r.batches[head%ringSlots]
		sum := uint64(0)
		for i := range blocks {
			size := sizeOf(rnd.Next(), min, span)
			b, err := alloc(int(size))
			if err != nil {
				fail(err)
			}
			touch(b)
			blocks[i] = b
			sum += size
		}
		r.head.Store(head + 1)
		res.sum += sum
	}

	if p.ops == 0 {
		for start := time.Now(); time.Since(start) < p.warm; {
			for range 16 {
				batch()
			}
		}
	}
	begin()
	start := time.Now()
	for p.ops > 0 && res.ops < p.ops || p.ops == 0 && time.Since(start) < p.run {
		for range 16 {
			batch()
		}
		res.ops += 16 * batchSize
	}
	res.ns = float64(time.Since(start)) / float64(res.ops)
	end()
	return res
}

func (r *ring) consume(read bool) {
	for spins := 0; ; {
		tail := r.tail.Load()
		done := r.done.Load() // before head: nothing is full after done
		if r.head.Load() == tail {
			if done {
				return
			}
			if spins++; spins >= spinRounds {
				runtime.Gosched()
			}
			continue
		}
		spins = 0
		for _, b := range &r.batches[tail%ringSlots] {
			if read && first(b) != 1 {
				fail(errors.New("a block lost its byte on the way"))
			}
			free(b)
		}
		r.tail.Store(tail + 1)
	}
}
