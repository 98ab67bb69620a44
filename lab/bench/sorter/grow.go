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
	for range p.top / growStep {
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
	r.cpu = float64(process.CPUTime() - used)
	if r.peak, err = process.Peak(); err != nil {
		return r, err
	}
	data := b.bytes()
	for i := 0; i < len(data); i += pageStep {
		if data[i] != 1 {
			return r, errors.New("the buffer lost its contents")
		}
	}
	r.ns, r.ops, r.sum = float64(spent), 1, uint64(len(data))
	r.requested, r.resident = uint64(len(data)), r.peak-min(before, r.peak)
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
	if r.ns, r.cpu, err = timed(func() error { return a.records(p.records) }); err != nil {
		return r, err
	}
	r.ops = p.records
	r.ns /= float64(r.ops)
	if r.peak, err = process.Peak(); err != nil {
		return r, err
	}
	r.requested, r.resident = uint64(r.ops*appendedBytes), r.peak-min(before, r.peak)
	r.sum = uint64(a.len())
	return r, nil
}
