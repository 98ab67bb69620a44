package sorts

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"slices"

	"github.com/dgraph-io/ristretto/v2/z"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/buffer"
)

// records is freehold's buffer.Records, sorted on a number of processors.
type records struct {
	b        *buffer.Buffer
	r        *buffer.Records
	kind     string
	parallel int
}

func newRecords(parallel int) func(kind string, n int) set {
	return func(kind string, n int) set {
		size := fixedBytes
		if kind == "framed" {
			size = 0
		}
		b := buffer.New(freehold.Default(), nil)
		must(0, b.Grow(bytesOfSet(kind, n)))
		return &records{b, must(buffer.NewRecords(b, &buffer.RecordsOptions{RecordBytes: size})), kind, parallel}
	}
}

func (s *records) add(record []byte) { must(0, s.r.AppendBytes(record)) }
func (s *records) bytes() int        { return s.b.Len() }

func (s *records) sort() {
	ctx, o := context.Background(), &buffer.SortOptions{Parallel: s.parallel}
	switch s.kind {
	case "24":
		must(0, s.r.SortByUint64(ctx, 0, binary.BigEndian, o))
	case "24-bytes":
		must(0, s.r.SortByPart(ctx, 0, 8, o))
	case "24-cmp":
		must(0, s.r.Sort(ctx, func(a, b []byte) int { return bytes.Compare(a[:8], b[:8]) }, o))
	case "framed":
		must(0, s.r.SortBy(ctx, nil, o))
	}
}

func (s *records) each(f func(record []byte)) {
	for _, record := range s.r.All() {
		f(record)
	}
}

// zSet is ristretto's z.Buffer, on the Go heap as by default. Its records have 8 bytes of length
// before them, and its sort is not stable.
type zSet struct {
	b    *z.Buffer
	less z.LessFunc
}

func newZ(kind string, n int) set {
	const lengthBytes, spare = 8, 1 << 20 // the last record grows a buffer that it would fill
	less := func(a, b []byte) bool { return bytes.Compare(a[:8], b[:8]) < 0 }
	if kind == "framed" {
		less = func(a, b []byte) bool { return bytes.Compare(a, b) < 0 }
	}
	return &zSet{z.NewBuffer(bytesOfSet(kind, n)+lengthBytes*n+spare, "bench"), less}
}

func (s *zSet) add(record []byte) { copy(s.b.SliceAllocate(len(record)), record) }
func (s *zSet) bytes() int        { return s.b.LenNoPadding() }
func (s *zSet) sort()             { s.b.SortSlice(s.less) }

func (s *zSet) each(f func(record []byte)) {
	must(0, s.b.SliceIterate(func(record []byte) error {
		f(record)
		return nil
	}))
}

// structs are Go values, side by side, sorted by package slices.
type structs []value

type value struct {
	key     uint64
	payload [fixedBytes - 8]byte
}

func newStructs(_ string, n int) set {
	all := make(structs, 0, n)
	return &all
}

func (s *structs) add(record []byte) {
	*s = append(*s, value{binary.BigEndian.Uint64(record), [fixedBytes - 8]byte(record[8:])})
}

func (s *structs) bytes() int { return fixedBytes * len(*s) }
func (s *structs) sort() {
	slices.SortFunc(*s, func(a, b value) int { return cmp.Compare(a.key, b.key) })
}

func (s *structs) each(f func(record []byte)) {
	var record [fixedBytes]byte
	for _, v := range *s {
		binary.BigEndian.PutUint64(record[:], v.key)
		copy(record[8:], v.payload[:])
		f(record[:])
	}
}
