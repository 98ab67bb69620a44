// Grow: one block from 1 MiB by doubling, with realloc and with a copy.
//
// Only the calls are timed. Every page of the block is touched before each
// step, outside the time, so there is always something to move.

package main

import (
	"errors"
	"time"

	"github.com/freehold-go/freehold/lab/bench/sample"
)

const (
	growFrom = 1 << 20
	growWarm = 16 << 20 // the untimed first round ends here
	pageStep = 4096
)

func runGrow(p *params) result { return growth(p, realloc) }

func runCopy(p *params) result {
	return growth(p, func(old block, from, to int) (block, error) {
		b, err := alloc(to)
		if err != nil {
			return b, err
		}
		copy(bytes(b, to), bytes(old, from))
		free(old)
		return b, nil
	})
}

// growth times one run up to p.Top; the operation is that whole run.
func growth(p *params, step func(b block, from, to int) (block, error)) (r result) {
	if _, err := growOnce(min(growWarm, p.Top), step); errors.Is(err, errCannot) {
		return result{Skip: err.Error()}
	} else if err != nil {
		sample.Fail(err)
	}
	sample.Begin()
	spent, err := growOnce(p.Top, step)
	if err != nil {
		sample.Fail(err)
	}
	sample.End()
	return result{NS: float64(spent), Ops: 1, Sum: uint64(p.Top)}
}

func growOnce(top int, step func(b block, from, to int) (block, error)) (spent time.Duration, err error) {
	b, err := alloc(growFrom)
	if err != nil {
		return 0, err
	}
	stamp(bytes(b, growFrom), 0)
	for size := growFrom; size < top; size *= 2 {
		start := time.Now()
		b, err = step(b, size, 2*size)
		spent += time.Since(start)
		if err != nil {
			return 0, err
		}
		if data := bytes(b, 2*size); data[0] != 1 || data[size-pageStep] != 1 {
			return 0, errors.New("the block lost its contents")
		}
		stamp(bytes(b, 2*size), size)
	}
	free(b)
	return spent, nil
}

// stamp touches every page of b from the given byte on.
func stamp(b []byte, from int) {
	for i := from; i < len(b); i += pageStep {
		b[i] = 1
	}
}
