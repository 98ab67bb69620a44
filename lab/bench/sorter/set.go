// Set: records in memory, to be sorted.

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"

	"github.com/freehold-go/freehold/lab/bench/random"
	"github.com/freehold-go/freehold/lab/process"
)

// The records that are sorted.
const (
	fixedBytes = 24 // with a random key in the first 8
	leastFrame = 8  // bytes of the smallest record where each has its own size
	mostFrame  = 64
)

// A set has records, and sorts them as the load says.
type set interface {
	add(record []byte) error
	sort() error
	bytes() int // that the records take, with their frames
	each(f func(record []byte))
}

// framed reports whether records have sizes of their own, and are compared as a
// whole.
func framed(p *params) bool { return p.Load == "framed" }

// bytesOfSet returns about how many bytes of records there are.
func bytesOfSet(p *params) int {
	if framed(p) {
		return p.Records * (leastFrame + mostFrame) / 2
	}
	return p.Records * fixedBytes
}

// runSort sorts a small set first, to warm up.
func runSort(p *params, fresh func(p *params) (set, error)) (r result, err error) {
	warm := *p
	warm.Records = max(p.Records/100, 2)
	if _, err = sortOnce(&warm, fresh); err != nil {
		return r, err
	}
	runtime.GC()
	return sortOnce(p, fresh)
}

func sortOnce(p *params, fresh func(p *params) (set, error)) (r result, err error) {
	s, err := fresh(p)
	if err != nil {
		return r, err
	}
	if err := fillSet(p, s); err != nil {
		return r, err
	}
	r.Requested = uint64(s.bytes())
	before, err := process.ResetPeak()
	if err != nil {
		return r, err
	}
	if r.NS, r.CPU, err = timed(s.sort); err != nil {
		return r, err
	}
	r.Ops = 1
	if r.Peak, err = process.Peak(); err != nil {
		return r, err
	}
	r.Resident = r.Peak - min(before, r.Peak)
	r.Sum, err = checkSet(p, s)
	return r, err
}

// fillSet adds random records.
func fillSet(p *params, s set) error {
	rnd := random.State(1)
	var record [mostFrame]byte
	for i := range p.Records {
		size := fixedBytes
		binary.BigEndian.PutUint64(record[:], rnd.Next())
		if framed(p) {
			size = leastFrame + int(rnd.Next()%(mostFrame-leastFrame+1))
			for at := 8; at < size; at += 8 {
				binary.BigEndian.PutUint64(record[at:], rnd.Next())
			}
		} else {
			binary.LittleEndian.PutUint64(record[8:], uint64(i))
		}
		if err := s.add(record[:size]); err != nil {
			return err
		}
	}
	return nil
}

// checkSet verifies the order, and returns a sum that depends on it.
func checkSet(p *params, s set) (sum uint64, err error) {
	n, last, ordered := 0, uint64(0), true
	s.each(func(record []byte) {
		key := binary.BigEndian.Uint64(record)
		ordered = ordered && key >= last
		last = key
		sum = sum*31 + key + uint64(len(record))
		n++
	})
	switch {
	case !ordered:
		return 0, errors.New("the result is not sorted")
	case n != p.Records:
		return 0, fmt.Errorf("%d records went in and %d came out", p.Records, n)
	}
	return sum, nil
}
