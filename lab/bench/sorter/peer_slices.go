// Peers: package slices on Go values, structs side by side or behind pointers.

package main

import (
	"cmp"
	"encoding/binary"
	"slices"
)

type value struct {
	key     uint64
	payload [fixedBytes - 8]byte
}

func valueOf(record []byte) value {
	return value{binary.BigEndian.Uint64(record), [fixedBytes - 8]byte(record[8:])}
}

func (v *value) bytes(record []byte) []byte {
	binary.BigEndian.PutUint64(record, v.key)
	copy(record[8:], v.payload[:])
	return record
}

type structs struct {
	v      []value
	sortBy func(v []value, cmp func(a, b value) int)
}

func newStructs(p *params) (set, error) {
	return &structs{make([]value, 0, p.Records), slices.SortFunc[[]value]}, nil
}

func newStable(p *params) (set, error) {
	return &structs{make([]value, 0, p.Records), slices.SortStableFunc[[]value]}, nil
}

func (s *structs) add(record []byte) error {
	s.v = append(s.v, valueOf(record))
	return nil
}

func (s *structs) bytes() int { return fixedBytes * len(s.v) }

func (s *structs) sort() error {
	s.sortBy(s.v, func(a, b value) int { return cmp.Compare(a.key, b.key) })
	return nil
}

func (s *structs) each(f func(record []byte)) {
	var record [fixedBytes]byte
	for i := range s.v {
		f(s.v[i].bytes(record[:]))
	}
}

type pointers struct{ v []*value }

func newPointers(p *params) (set, error) { return &pointers{make([]*value, 0, p.Records)}, nil }

func (s *pointers) add(record []byte) error {
	v := valueOf(record)
	s.v = append(s.v, &v)
	return nil
}

func (s *pointers) bytes() int { return fixedBytes * len(s.v) }

func (s *pointers) sort() error {
	slices.SortFunc(s.v, func(a, b *value) int { return cmp.Compare(a.key, b.key) })
	return nil
}

func (s *pointers) each(f func(record []byte)) {
	var record [fixedBytes]byte
	for _, v := range s.v {
		f(v.bytes(record[:]))
	}
}
