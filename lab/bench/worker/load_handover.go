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

	"github.com/freehold-go/freehold/lab/bench/sample"
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
	go func() { r.consume(p.Read); close(freed) }()
	result := r.produce(p)
	r.done.Store(true)
	<-freed
	return result
}

func (r *ring) produce(p *params) (res result) {
	rnd, min, span := seed(0), uint64(p.Min), uint64(p.Max-p.Min+1)
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
				sample.Fail(err)
			}
			touch(b)
			blocks[i] = b
			sum += size
		}
		r.head.Store(head + 1)
		res.Sum += sum
	}

	if p.Ops == 0 {
		for start := time.Now(); time.Since(start) < p.Warm; {
			for range 16 {
				batch()
			}
		}
	}
	sample.Begin()
	start := time.Now()
	for p.Ops > 0 && res.Ops < p.Ops || p.Ops == 0 && time.Since(start) < p.Run {
		for range 16 {
			batch()
		}
		res.Ops += 16 * batchSize
	}
	res.NS = float64(time.Since(start)) / float64(res.Ops)
	sample.End()
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
				sample.Fail(errors.New("a block lost its byte on the way"))
			}
			free(b)
		}
		r.tail.Store(tail + 1)
	}
}
