// Record: what the sort story sorts, 24 bytes with a random key.
//
//	| key, 8 B big-endian | number, 8 B | seal of both, 8 B |
//
// Every key belongs to one number, so that records are made and verified without
// memory: in order, none missing, none twice, none damaged.

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/dustin/go-humanize"
)

const (
	recordBytes    = 24
	recordKeyBytes = 8
)

var errRecord = errors.New("the result is wrong")

// recordKey is splitmix64, which has another result for each number.
func recordKey(number uint64) uint64 {
	x := (number + 1) * 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

func recordSeal(key, number uint64) uint64 { return key*0x9E3779B97F4A7C15 ^ number }

func putRecord(b []byte, number uint64) {
	key := recordKey(number)
	binary.BigEndian.PutUint64(b, key)
	binary.LittleEndian.PutUint64(b[8:], number)
	binary.LittleEndian.PutUint64(b[16:], recordSeal(key, number))
}

func keyOfRecord(b []byte) uint64 { return binary.BigEndian.Uint64(b) }

// A recordReader reads n new records.
type recordReader struct {
	n, made uint64
	record  [recordBytes]byte
	rest    []byte // of record
	report  func(done, n uint64)
}

func (r *recordReader) Read(b []byte) (n int, err error) {
	for len(b) > 0 {
		switch {
		case len(r.rest) > 0:
			took := copy(b, r.rest)
			r.rest = r.rest[took:]
			b, n = b[took:], n+took
		case r.made == r.n && n == 0:
			return 0, io.EOF
		case r.made == r.n:
			b = nil
		case len(b) >= recordBytes:
			putRecord(b, r.made)
			r.made++
			b, n = b[recordBytes:], n+recordBytes
		default:
			putRecord(r.record[:], r.made)
			r.made++
			r.rest = r.record[:]
		}
	}
	r.report(r.made, r.n)
	return n, nil
}

// A recordCheck verifies records in the order in which they are to be.
type recordCheck struct {
	n, sum, last uint64
	rest         []byte // of a record of which a part was written
}

func (c *recordCheck) add(key, number, seal uint64) error {
	switch {
	case c.n > 0 && key <= c.last:
		return fmt.Errorf("%w: record %d is not in order", errRecord, c.n)
	case key != recordKey(number) || seal != recordSeal(key, number):
		return fmt.Errorf("%w: record %d is damaged", errRecord, c.n)
	}
	c.last, c.n, c.sum = key, c.n+1, c.sum+number
	return nil
}

func (c *recordCheck) addBytes(b []byte) error {
	return c.add(keyOfRecord(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:]))
}

// Write takes records, in parts of any size.
func (c *recordCheck) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		if len(c.rest) == 0 && len(b) >= recordBytes {
			if err := c.addBytes(b[:recordBytes]); err != nil {
				return 0, err
			}
			b = b[recordBytes:]
			continue
		}
		took := min(recordBytes-len(c.rest), len(b))
		c.rest, b = append(c.rest, b[:took]...), b[took:]
		if len(c.rest) == recordBytes {
			if err := c.addBytes(c.rest); err != nil {
				return 0, err
			}
			c.rest = c.rest[:0]
		}
	}
	return n, nil
}

// end verifies that these were all of n records. As keys ascend, no record was
// there twice.
func (c *recordCheck) end(n uint64) error {
	if c.n != n || c.sum != n*(n-1)/2 || len(c.rest) > 0 {
		return fmt.Errorf("%w: there were %s, want %s", errRecord, plural(c.n, "whole record"), humanize.Comma(int64(n)))
	}
	return nil
}
