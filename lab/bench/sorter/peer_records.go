// Peer: freehold's buffer.Buffer and buffer.Records.

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/buffer"
)

type records struct {
	b    *buffer.Buffer
	r    *buffer.Records
	load string
	o    *buffer.SortOptions
}

func newRecords(p *params) (set, error) {
	size := fixedBytes
	if framed(p) {
		size = 0
	}
	b := buffer.New(freehold.Default(), nil)
	if err := b.Grow(bytesOfSet(p)); err != nil {
		_ = b.Close()
		return nil, err
	}
	r, err := buffer.NewRecords(b, &buffer.RecordsOptions{RecordBytes: size})
	return &records{b, r, p.Load, &buffer.SortOptions{Parallel: p.Parallel}}, err
}

func (s *records) add(record []byte) error { return s.r.AppendBytes(record) }

func (s *records) bytes() int { return s.b.Len() }

func (s *records) sort() error {
	ctx := context.Background()
	switch s.load {
	case "sort24":
		return s.r.SortByUint64(ctx, 0, binary.BigEndian, s.o)
	case "sort24-bytes":
		return s.r.SortByPart(ctx, 0, 8, s.o)
	case "sort24-cmp":
		return s.r.Sort(ctx, func(a, b []byte) int { return bytes.Compare(a[:8], b[:8]) }, s.o)
	case "framed":
		return s.r.SortBy(ctx, nil, s.o)
	}
	return fmt.Errorf("no load %q", s.load)
}

func (s *records) each(f func(record []byte)) {
	for _, record := range s.r.All() {
		f(record)
	}
}

type grown struct{ b *buffer.Buffer }

func growBuffer(*params) (growing, error) {
	b := buffer.New(freehold.Default(), nil)
	return grown{b}, b.Grow(growFrom)
}

func (g grown) grow(n int) error             { return g.b.Grow(n) }
func (g grown) extend(n int) ([]byte, error) { return g.b.Extend(n) }
func (g grown) bytes() []byte                { return g.b.Bytes() }

type appended struct{ r *buffer.Records }

func newRecordsAppend(p *params) (appending, error) {
	size := 0
	if p.Load == "append-fixed" {
		size = appendedBytes
	}
	r, err := buffer.NewRecords(buffer.New(freehold.Default(), nil), &buffer.RecordsOptions{RecordBytes: size})
	return appended{r}, err
}

func (a appended) records(n int) error {
	for i := range n {
		record, err := a.r.Append(appendedBytes)
		if err != nil {
			return err
		}
		record[0] = byte(i)
	}
	return nil
}

func (a appended) len() int { return a.r.Len() }
