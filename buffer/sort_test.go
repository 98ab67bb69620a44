// Sorts, against slices.SortStableFunc.

package buffer_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// A sorting is a way to sort, and the comparison that it must agree with.
type sorting struct {
	name string
	sort func(r *buffer.Records, o *buffer.SortOptions) error
	cmp  func(a, b []byte) int
}

// keyOf returns the part of a record that the tests sort by: all but the last 4
// bytes, which number the records.
func keyOf(record []byte) []byte { return record[:max(0, len(record)-4)] }

// middle returns a key that ends in the middle of a record.
func middle(record []byte) []byte { return record[len(record)/4 : len(record)/2] }

func byKey(key func([]byte) []byte) func(a, b []byte) int {
	return func(a, b []byte) int { return bytes.Compare(key(a), key(b)) }
}

// sortBy returns a sorting by a key that is a part of the record, and one by a copy
// of it.
func sortBy(name string, key func([]byte) []byte) []sorting {
	clone := func(p []byte) []byte { return bytes.Clone(key(p)) }
	return []sorting{
		{"SortBy/" + name, func(r *buffer.Records, o *buffer.SortOptions) error {
			return r.SortBy(context.Background(), key, o)
		}, byKey(key)},
		{"SortBy/copy of " + name, func(r *buffer.Records, o *buffer.SortOptions) error {
			return r.SortBy(context.Background(), clone, o)
		}, byKey(key)},
	}
}

func sortByPart(at, n int) sorting {
	return sorting{fmt.Sprintf("SortByPart/%d at %d", n, at), func(r *buffer.Records, o *buffer.SortOptions) error {
		return r.SortByPart(context.Background(), at, n, o)
	}, byKey(func(p []byte) []byte { return p[at : at+n] })}
}

func sortByUint64(at int, order binary.ByteOrder) sorting {
	return sorting{fmt.Sprintf("SortByUint64/%v at %d", order, at), func(r *buffer.Records, o *buffer.SortOptions) error {
		return r.SortByUint64(context.Background(), at, order, o)
	}, func(a, b []byte) int { return cmp.Compare(order.Uint64(a[at:]), order.Uint64(b[at:])) }}
}

// sortings are for records of size bytes, or of any if it is 0.
func sortings(size int) []sorting {
	all := []sorting{
		{"Sort", func(r *buffer.Records, o *buffer.SortOptions) error {
			return r.Sort(context.Background(), byKey(keyOf), o)
		}, byKey(keyOf)},
		{"SortBy/nil", func(r *buffer.Records, o *buffer.SortOptions) error {
			return r.SortBy(context.Background(), nil, o)
		}, bytes.Compare},
		{"SortBy/nothing", func(r *buffer.Records, o *buffer.SortOptions) error {
			return r.SortBy(context.Background(), func(p []byte) []byte { return p[:0] }, o)
		}, func(a, b []byte) int { return 0 }},
	}
	all = append(all, sortBy("all but the number", keyOf)...)
	all = append(all, sortBy("middle", middle)...)
	if size == 0 {
		return all
	}
	all = append(all, sortByPart(0, max(0, size-4)), sortByPart(size/4, size/3), sortByPart(size, 0))
	for at := 0; at+8 <= size && at < 24; at += 5 {
		all = append(all, sortByUint64(at, binary.BigEndian), sortByUint64(at, binary.LittleEndian), sortByPart(at+4, 4))
	}
	return all
}

// inputs make the contents of record i of n.
var inputs = []struct {
	name string
	key  func(rng *rand.Rand, i, n int) []byte
}{
	{"random", func(rng *rand.Rand, i, n int) []byte { return random(rng, 64) }},
	{"equal", func(rng *rand.Rand, i, n int) []byte { return make([]byte, 64) }},
	{"all ones", func(rng *rand.Rand, i, n int) []byte { return bytes.Repeat([]byte{255}, 64) }},
	{"of 17", func(rng *rand.Rand, i, n int) []byte { return number(uint64(rng.IntN(17))) }},
	{"zeros and ones", func(rng *rand.Rand, i, n int) []byte { return bytes.Repeat([]byte{byte(-rng.IntN(2))}, 64) }},
	{"sorted", func(rng *rand.Rand, i, n int) []byte { return number(uint64(i)) }},
	{"descending", func(rng *rand.Rand, i, n int) []byte { return number(uint64(n - i)) }},
	{"descending by twos", func(rng *rand.Rand, i, n int) []byte { return number(uint64(n-i) / 2) }},
	{"nearly sorted", func(rng *rand.Rand, i, n int) []byte { return number(uint64(i + rng.IntN(20))) }},
	{"up and down", func(rng *rand.Rand, i, n int) []byte { return number(uint64(min(i, n-i))) }},
	{"low bits", func(rng *rand.Rand, i, n int) []byte { return number(rng.Uint64() >> 50) }},
	{"high bits", func(rng *rand.Rand, i, n int) []byte { return number(rng.Uint64() << 50) }},
	{"one bucket", func(rng *rand.Rand, i, n int) []byte {
		if rng.IntN(100) == 0 {
			return number(rng.Uint64())
		}
		return number(rng.Uint64() >> 40)
	}},
	{"common prefix", func(rng *rand.Rand, i, n int) []byte {
		return append(bytes.Repeat([]byte("same"), 14), random(rng, 8)...)
	}},
	{"bytes 7 to 9", func(rng *rand.Rand, i, n int) []byte { return append(make([]byte, 7), random(rng, 2)...) }},
	{"bytes 15 to 17", func(rng *rand.Rand, i, n int) []byte { return append(make([]byte, 15), random(rng, 2)...) }},
	{"few bits", func(rng *rand.Rand, i, n int) []byte {
		p := make([]byte, 64)
		p[rng.IntN(20)] = byte(1 << rng.IntN(8))
		return p
	}},
	{"Zipf", func(rng *rand.Rand, i, n int) []byte {
		return number(uint64(rand.NewZipf(rng, 1.2, 1, 1<<20).Uint64()))
	}},
}

func random(rng *rand.Rand, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(rng.Uint32())
	}
	return p
}

func number(x uint64) []byte { return binary.BigEndian.AppendUint64(nil, x) }

// fill returns n records of size bytes, or of 0 to 64: the input's key, cut or padded,
// and the record's number.
func fill(rng *rand.Rand, key func(*rand.Rand, int, int) []byte, n, size int) [][]byte {
	records := make([][]byte, n)
	for i := range records {
		p := key(rng, i, n)
		s := size
		if s == 0 {
			s = rng.IntN(65)
		}
		p = append(p, make([]byte, max(0, s-len(p)))...)[:s]
		if s > 4 {
			binary.BigEndian.PutUint32(p[s-4:], uint32(i))
		}
		records[i] = p
	}
	return records
}

// wantSorted sorts records and checks the result.
func wantSorted(t testing.TB, b *buffer.Buffer, o *buffer.RecordsOptions, records [][]byte, by sorting, so *buffer.SortOptions) {
	t.Helper()
	r := must1(buffer.NewRecords(b, o))
	for _, p := range records {
		must(t, r.AppendBytes(p))
	}
	want := slices.Clone(records)
	slices.SortStableFunc(want, by.cmp)
	must(t, by.sort(r, so))
	i := 0
	for _, p := range r.All() {
		if !bytes.Equal(p, want[i]) {
			t.Fatalf("record %d of %d is %x, want %x", i, len(want), p, want[i])
		}
		i++
	}
	if i != len(want) || r.Len() != i {
		t.Fatalf("%d records, want %d", i, len(want))
	}
	r.Clear()
}

var layouts = []buffer.RecordsOptions{
	{}, {Align: 8}, {Align: 64},
	{RecordBytes: 1}, {RecordBytes: 7}, {RecordBytes: 8}, {RecordBytes: 9}, {RecordBytes: 12},
	{RecordBytes: 16}, {RecordBytes: 24}, {RecordBytes: 32}, {RecordBytes: 40}, {RecordBytes: 48}, {RecordBytes: 56},
	{RecordBytes: 64, Align: 64}, {RecordBytes: 72}, {RecordBytes: 4096},
	{LongLengths: true}, {LongLengths: true, Align: 32},
}

func TestSortsAgreeWithAStableSort(t *testing.T) {
	for _, o := range layouts {
		t.Run(fmt.Sprintf("recordBytes=%d/align=%d/long=%t", o.RecordBytes, o.Align, o.LongLengths), func(t *testing.T) {
			b := newBuffer(t, nil)
			for k, by := range sortings(o.RecordBytes) {
				for i, in := range inputs {
					if testing.Short() && (i+k)%3 != 0 {
						continue
					}
					rng := rand.New(rand.NewPCG(uint64(k), uint64(i)))
					n := []int{2, 3, 23, 24, 25, 26, 100, 1000}[(k+i)%8]
					wantSorted(t, b, &o, fill(rng, in.key, n, o.RecordBytes), by, nil)
				}
			}
		})
	}
}

func TestSortsOfNoneAndOne(t *testing.T) {
	for _, o := range layouts {
		for _, by := range sortings(o.RecordBytes) {
			b := newBuffer(t, nil)
			wantSorted(t, b, &o, nil, by, nil)
			wantSorted(t, b, &o, [][]byte{make([]byte, o.RecordBytes)}, by, nil)
		}
	}
}

// Entries of equal records may refer to one of them.
func TestSortsOfEqualRecords(t *testing.T) {
	for _, few := range []string{"ab", "ba", "aab", "abb", "bba", "acb"} {
		var records [][]byte
		for i := range 300 {
			records = append(records, fmt.Appendf(nil, "%c and more than a word", few[i%len(few)]))
		}
		for _, by := range sortings(0)[1:] {
			wantSorted(t, newBuffer(t, nil), nil, records, by, nil)
		}
	}
}

// Many records: digits of 11 bits, shares for goroutines, chunks.
func TestSortsOfManyRecords(t *testing.T) {
	b := newBuffer(t, nil)
	for i, in := range inputs {
		for k, o := range []buffer.RecordsOptions{{}, {RecordBytes: 24}, {RecordBytes: 9}, {Align: 8}, {RecordBytes: 8}, {LongLengths: true}} {
			size := o.RecordBytes
			all := sortings(size)
			for j, by := range all {
				if (i+j)%len(inputs) != k && (testing.Short() || (i+j)%7 != 0) {
					continue
				}
				parallel := []int{1, 2, 3, 8}[(i+j+k)%4]
				t.Run(fmt.Sprintf("%s/%+v/%s/%d", in.name, o, by.name, parallel), func(t *testing.T) {
					rng := rand.New(rand.NewPCG(uint64(k), uint64(i)))
					n := 150<<10/max(size, 33) + rng.IntN(10)
					if j%4 == 0 && !testing.Short() {
						n = 150_000
					}
					wantSorted(t, b, &o, fill(rng, in.key, n, size), by, &buffer.SortOptions{Parallel: parallel})
				})
			}
		}
	}
}

// From 64 Ki records on digits have 11 bits, at each level of which there are that
// many, and from 8 MiB on scratch is advised about.
func TestSortsWithLongDigits(t *testing.T) {
	b := newBuffer(t, nil)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, tt := range []struct {
		input int
		size  int
	}{{12, 8}, {0, 16}} {
		o := &buffer.RecordsOptions{RecordBytes: tt.size}
		wantSorted(t, b, o, fill(rng, inputs[tt.input].key, 140_000, tt.size), sortByUint64(0, binary.BigEndian), &buffer.SortOptions{Parallel: 1})
	}
	if testing.Short() {
		return
	}
	o := &buffer.RecordsOptions{RecordBytes: 64}
	wantSorted(t, b, o, fill(rng, inputs[0].key, 300_000, 64), sortings(64)[0], nil)
}

// Frames that are larger than a share of scratch, than all of it, and than all
// others together.
func TestLargeFramesAmongSmall(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, by := range sortings(0) {
		t.Run(by.name, func(t *testing.T) {
			for _, large := range [][]int{{5000}, {50_000}, {250_000}, {75_000, 75_000}, {25_000, 50_000, 75_000, 100_000}} {
				for _, smalls := range []int{0, 1, 20, 500} {
					records := fill(rng, inputs[rng.IntN(4)].key, smalls, 0)
					for _, n := range large {
						records = slices.Insert(records, rng.IntN(len(records)+1), append(random(rng, 4), make([]byte, n)...))
					}
					for _, align := range []int{1, 16} {
						o := &buffer.RecordsOptions{Align: align}
						wantSorted(t, newBuffer(t, nil), o, records, by, &buffer.SortOptions{Parallel: 1 + rng.IntN(4)})
					}
				}
			}
		})
	}
}

// A frame that does not fit into scratch keeps its place among equal ones.
func TestLargeFramesAreStable(t *testing.T) {
	large := append([]byte{5}, make([]byte, 100_000)...)
	var records [][]byte
	for _, p := range []string{"\x05 before", "\x09", "LARGE", "\x03", "\x05 after", "\x05 last"} {
		if p == "LARGE" {
			records = append(records, large)
		} else {
			records = append(records, []byte(p))
		}
	}
	for _, by := range append(sortBy("first byte", func(p []byte) []byte { return p[:1] }),
		sorting{"Sort/first byte", func(r *buffer.Records, o *buffer.SortOptions) error {
			return r.Sort(context.Background(), func(a, b []byte) int { return int(a[0]) - int(b[0]) }, o)
		}, func(a, b []byte) int { return int(a[0]) - int(b[0]) }}) {
		t.Run(by.name, func(t *testing.T) {
			for at := range records {
				wantSorted(t, newBuffer(t, nil), nil, slices.Concat(records[at:], records[:at]), by, &buffer.SortOptions{Parallel: 1})
			}
		})
	}
}

func TestSortOfABufferInAFile(t *testing.T) {
	mapsFiles(t)
	dir := filetest.TempDir(t)
	for _, o := range []buffer.RecordsOptions{{}, {RecordBytes: 24}} {
		b := buffer.New(alloctest.New(t), &buffer.Options{SpillAfter: 1, Dir: dir})
		for i, by := range sortings(o.RecordBytes) {
			rng := rand.New(rand.NewPCG(1, 2))
			wantSorted(t, b, &o, fill(rng, inputs[0].key, 10_000, o.RecordBytes), by, &buffer.SortOptions{Parallel: 1 + i%2})
			wantSorted(t, b, &o, fill(rng, inputs[0].key, 100, o.RecordBytes), by, &buffer.SortOptions{Scratch: alloctest.New(t)})
		}
		must(t, b.Close())
	}
	wantEmpty(t, dir)
}
