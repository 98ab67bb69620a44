// Grow and append: what a buffer does before it is sorted.

package main

import (
	"errors"
	"time"

	"github.com/freehold-go/freehold/lab/process"
)

const (
	growFrom = 1 << 20
	growStep = 1 << 20
	pageStep = 4096
)

// growing is a buffer of bytes that grows to any size.
type growing interface {
	grow(n int) error             // makes room for n more bytes
	extend(n int) ([]byte, error) // appends n bytes
	bytes() []byte
}

// runGrow appends a step at a time and writes to each page. Only making room is
// timed.
func runGrow(p *params, fresh func(p *params) (growing, error)) (r result, err error) {
	b, err := fresh(p)
	if err != nil {
		return r, err
	}
	before, err := process.ResetPeak()
	if err != nil {
		return r, err
	}
	used := process.CPUTime()
	var spent time.Duration
	for range p.Top / growStep {
		began := time.Now()
		if err := b.grow(growStep); err != nil {
			return r, err
		}
		spent += time.Since(began)
		part, err := b.extend(growStep)
		if err != nil {
			return r, err
		}
		for i := 0; i < len(part); i += pageStep {
			part[i] = 1
		}
	}
	r.CPU = float64(process.CPUTime() - used)
	if r.Peak, err = process.Peak(); err != nil {
		return r, err
	}
	data := b.bytes()
	for i := 0; i < len(data); i += pageStep {
		if data[i] != 1 {
			return r, errors.New("the buffer lost its contents")
		}
	}
	r.NS, r.Ops, r.Sum = float64(spent), 1, uint64(len(data))
	r.Requested, r.Resident = uint64(len(data)), r.Peak-min(before, r.Peak)
	return r, nil
}

const appendedBytes = 16

// appending appends records of 16 bytes.
type appending interface {
	records(n int) error // appends n, and writes to each
	len() int
}

// runAppend appends to an empty buffer.
func runAppend(p *params, fresh func(p *params) (appending, error)) (r result, err error) {
	a, err := fresh(p)
	if err != nil {
		return r, err
	}
	before, err := process.ResetPeak()
	if err != nil {
		return r, err
	}
	if r.NS, r.CPU, err = timed(func() error { return a.records(p.Records) }); err != nil {
		return r, err
	}
	r.Ops = p.Records
	r.NS /= float64(r.Ops)
	if r.Peak, err = process.Peak(); err != nil {
		return r, err
	}
	r.Requested, r.Resident = uint64(r.Ops*appendedBytes), r.Peak-min(before, r.Peak)
	r.Sum = uint64(a.len())
	return r, nil
}
