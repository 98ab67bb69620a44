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

	"github.com/freehold-go/freehold/lab/bench/sample"
)

// errCannot marks what a peer has no function for.
var errCannot = errors.New("has no realloc")

// runLive allocates p.Slots blocks and keeps all of them.
func runLive(p *params) result {
	l, before, skip := newPopulation(p)
	if skip != "" {
		return result{Skip: skip}
	}
	sample.Begin()
	start := time.Now()
	for i := range l.live {
		b, err := alloc(int(l.next()))
		if err != nil {
			sample.Fail(err)
		}
		touch(b)
		l.live[i] = b
	}
	spent := time.Since(start)
	sample.End()

	l.random = seed(0) // the same sizes again, for the bytes beyond the first
	for _, b := range l.live {
		size := int(l.next())
		fill(bytes(b, size))
		l.requested += uint64(size)
	}
	return l.result(before, float64(spent)/float64(p.Slots), p.Slots)
}

// runChurn replaces blocks of a full table at random, twice as often as there
// are blocks, so that what fragmentation costs shows.
func runChurn(p *params) result {
	l, before, skip := newPopulation(p)
	if skip != "" {
		return result{Skip: skip}
	}
	sizes := make([]uint32, p.Slots)
	clear(sizes)
	before += uint64(4 * p.Slots)
	place := func(i, size uint64) {
		b, err := alloc(int(size))
		if err != nil {
			sample.Fail(err)
		}
		fill(bytes(b, int(size)))
		l.live[i], sizes[i] = b, uint32(size)
		l.requested += size
	}
	for i := range l.live {
		place(uint64(i), l.next())
	}
	sample.Begin()
	start := time.Now()
	for range 2 * p.Slots {
		x := l.random.Next()
		slot := slotOf(x, uint64(p.Slots))
		l.requested -= uint64(sizes[slot])
		free(l.live[slot])
		place(slot, sizeOf(x, l.min, l.span))
	}
	spent := time.Since(start)
	sample.End()
	return l.result(before, float64(spent)/float64(2*p.Slots), 2*p.Slots)
}

type population struct {
	live      []block
	min, span uint64
	random    random.State
	requested uint64
}

func newPopulation(p *params) (l *population, resident uint64, skip string) {
	l = &population{
		live: make([]block, p.Slots),
		min:  uint64(p.Min), span: uint64(p.Max - p.Min + 1),
		random: seed(0),
	}
	clear(l.live)          // touches it: fresh memory from the system is not in RSS yet
	b, err := alloc(p.Min) // the allocator's own start-up is not a block's cost
	if err != nil {
		sample.Fail(err)
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
		sample.Fail(err)
	}
	runtime.KeepAlive(l.live)
	return result{
		NS: ns, Ops: ops, Sum: l.requested,
		Requested: l.requested, Resident: after - min(before, after),
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
