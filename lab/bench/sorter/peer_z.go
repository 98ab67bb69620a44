// Peer: ristretto's z.Buffer, on the Go heap as by default. Its records have 8
// bytes of length before them, and its sort is not stable.

package main

import (
	"bytes"

	"github.com/dgraph-io/ristretto/v2/z"
)

type zSet struct {
	b    *z.Buffer
	less z.LessFunc
}

func newZ(p *params) (set, error) {
	const lengthBytes, spare = 8, 1 << 20 // the last record grows a buffer that it would fill
	less := func(a, b []byte) bool { return bytes.Compare(a[:8], b[:8]) < 0 }
	if framed(p) {
		less = func(a, b []byte) bool { return bytes.Compare(a, b) < 0 }
	}
	return &zSet{z.NewBuffer(bytesOfSet(p)+lengthBytes*p.Records+spare, "bench"), less}, nil
}

func (s *zSet) add(record []byte) error {
	copy(s.b.SliceAllocate(len(record)), record)
	return nil
}

func (s *zSet) bytes() int { return s.b.LenNoPadding() }

func (s *zSet) sort() error {
	s.b.SortSlice(s.less)
	return nil
}

func (s *zSet) each(f func(record []byte)) {
	_ = s.b.SliceIterate(func(record []byte) error {
		f(record)
		return nil
	})
}

type zGrown struct{ b *z.Buffer }

func growZ(*params) (growing, error) { return zGrown{z.NewBuffer(growFrom, "bench")}, nil }

func (g zGrown) grow(n int) error {
	g.b.Grow(n)
	return nil
}

func (g zGrown) extend(n int) ([]byte, error) { return g.b.Allocate(n), nil }
func (g zGrown) bytes() []byte                { return g.b.Bytes() }

type zAppended struct {
	b *z.Buffer
	n int
}

func newZAppend(*params) (appending, error) {
	return &zAppended{b: z.NewBuffer(growFrom, "bench")}, nil
}

func (a *zAppended) records(n int) error {
	for i := range n {
		a.b.SliceAllocate(appendedBytes)[0] = byte(i)
	}
	a.n += n
	return nil
}

func (a *zAppended) len() int { return a.n }

func zVersion(*params) (string, error) { return "ristretto z on the Go heap", nil }
