// Live: how much memory live blocks take, all of their bytes touched.
//
// The table of blocks is there and touched before the count starts, so that
// what the process grows by is the allocator's alone.

package main

import (
	"errors"
	"runtime"
	"time"

	"github.com/freehold-go/freehold/lab/bench/random"
	"github.com/freehold-go/freehold/lab/process"
)

// errCannot marks what a peer has no function for.
var errCannot = errors.New("has no realloc")

// runLive allocates p.slots blocks and keeps all of them.
func runLive(p *params) result {
	l, before, skip := newPopulation(p)
	if skip != "" {
		return result{skip: skip}
	}
	begin()
	start := time.Now()
	for i := range l.live {
		b, err := alloc(int(l.next()))
		if err != nil {
			fail(err)
		}
		touch(b)
		l.live[i] = b
	}
	spent := time.Since(start)
	end()

	l.random = seed(0) // the same sizes again, for the bytes beyond the first
	for _, b := range l.live {
		size := int(l.next())
		fill(bytes(b, size))
		l.requested += uint64(size)
	}
	return l.result(before, float64(spent)/float64(p.slots), p.slots)
}

// runChurn replaces blocks of a full table at random, twice as often as there
// are blocks, so that what fragmentation costs shows.
func runChurn(p *params) result {
	l, before, skip := newPopulation(p)
	if skip != "" {
		return result{skip: skip}
	}
	sizes := make([]uint32, p.slots)
	clear(sizes)
	before += uint64(4 * p.slots)
	place := func(i, size uint64) {
		b, err := alloc(int(size))
		if err != nil {
			fail(err)
		}
		fill(bytes(b, int(size)))
		l.live[i], sizes[i] = b, uint32(size)
		l.requested += size
	}
	for i := range l.live {
		place(uint64(i), l.next())
	}
	begin()
	start := time.Now()
	for range 2 * p.slots {
		x := l.random.Next()
		slot := slotOf(x, uint64(p.slots))
		l.requested -= uint64(sizes[slot])
		free(l.live[slot])
		place(slot, sizeOf(x, l.min, l.span))
	}
	spent := time.Since(start)
	end()
	return l.result(before, float64(spent)/float64(2*p.slots), 2*p.slots)
}

type population struct {
	live      []block
	min, span uint64
	random    random.State
	requested uint64
}

func newPopulation(p *params) (l *population, resident uint64, skip string) {
	l = &population{
		live: make([]block, p.slots),
		min:  uint64(p.min), span: uint64(p.max - p.min + 1),
		random: seed(0),
	}
	clear(l.live)          // touches it: fresh memory from the system is not in RSS yet
	b, err := alloc(p.min) // the allocator's own start-up is not a block's cost
	if err != nil {
		fail(err)
	}
	free(b)
	runtime.GC()
	resident, err = process.Resident()
	if err != nil {
		return nil, 0, err.Error()
	}
	return l, resident, ""
}

func (l *population) next() uint64 { return sizeOf(l.random.Next(), l.min, l.span) }

func (l *population) result(before uint64, ns float64, ops int) result {
	after, err := process.Resident()
	if err != nil {
		fail(err)
	}
	runtime.KeepAlive(l.live)
	return result{
		ns: ns, ops: ops, sum: l.requested,
		requested: l.requested, resident: after - min(before, after),
	}
}

// fill writes every byte of b. Not with zeros: a zero page may be anyone's.
func fill(b []byte) {
	for len(b) > 0 {
		b = b[copy(b, ones[:]):]
	}
}

var ones = func() (o [4096]byte) {
	for i := range o {
		o[i] = 1
	}
	return o
}()
