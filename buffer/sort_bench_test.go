package buffer_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/buffer"
)

// BenchmarkSort sorts 10 million records (1 million with -short): of 24 B with a
// random key of 8, or of 8 to 64 random bytes.
func BenchmarkSort(b *testing.B) {
	for _, size := range []int{24, 0} {
		for _, by := range []struct {
			name string
			sort func(r *buffer.Records, o *buffer.SortOptions) error
		}{
			{"number", func(r *buffer.Records, o *buffer.SortOptions) error {
				return r.SortByUint64(context.Background(), 0, binary.BigEndian, o)
			}},
			{"part", func(r *buffer.Records, o *buffer.SortOptions) error {
				return r.SortByPart(context.Background(), 0, 8, o)
			}},
			{"key", func(r *buffer.Records, o *buffer.SortOptions) error {
				return r.SortBy(context.Background(), func(record []byte) []byte { return record[:8] }, o)
			}},
			{"whole", func(r *buffer.Records, o *buffer.SortOptions) error {
				return r.SortBy(context.Background(), nil, o)
			}},
			{"cmp", func(r *buffer.Records, o *buffer.SortOptions) error {
				return r.Sort(context.Background(), func(a, b []byte) int { return bytes.Compare(a[:8], b[:8]) }, o)
			}},
		} {
			if size == 0 && (by.name == "number" || by.name == "part") {
				continue
			}
			for _, parallel := range []int{1, runtime.GOMAXPROCS(0)} {
				b.Run(fmt.Sprintf("recordBytes=%d/by=%s/parallel=%d", size, by.name, parallel), func(b *testing.B) {
					benchmarkSort(b, size, func(r *buffer.Records) error {
						return by.sort(r, &buffer.SortOptions{Parallel: parallel})
					})
				})
			}
		}
	}
}

func fillRandom(p []byte, rng *rand.Rand) {
	for len(p) >= 8 {
		binary.LittleEndian.PutUint64(p, rng.Uint64())
		p = p[8:]
	}
	for i := range p {
		p[i] = byte(rng.Uint32())
	}
}

func benchmarkSort(b *testing.B, size int, sort func(r *buffer.Records) error) {
	n := 10_000_000
	if testing.Short() {
		n /= 10
	}
	buf := buffer.New(freehold.Default(), nil)
	defer buf.Close()
	r := must1(buffer.NewRecords(buf, &buffer.RecordsOptions{RecordBytes: size}))
	seed := uint64(0)
	for b.Loop() {
		b.StopTimer()
		seed++
		rng := rand.New(rand.NewPCG(seed, 1))
		r.Clear()
		for range n {
			s := size
			if size == 0 {
				s = 8 + rng.IntN(57)
			}
			p, err := r.Append(s)
			if err != nil {
				b.Fatal(err)
			}
			if size != 0 {
				binary.LittleEndian.PutUint64(p, rng.Uint64())
				continue
			}
			fillRandom(p, rng)
		}
		b.StartTimer()
		must(b, sort(r))
	}
}

// BenchmarkSortPrefix sorts 100 MB of long records (10 MB with -short): random ones,
// and ones that differ in their last 16 bytes alone: all of them, or 30 groups.
func BenchmarkSortPrefix(b *testing.B) {
	total := 100_000_000
	if testing.Short() {
		total /= 10
	}
	sorts := map[string]func(r *buffer.Records) error{
		"key": func(r *buffer.Records) error { return r.SortBy(context.Background(), nil, nil) },
		"cmp": func(r *buffer.Records) error { return r.Sort(context.Background(), bytes.Compare, nil) },
	}
	for _, size := range []int{1000, 10_000} {
		for _, prefixes := range []int{0, 1, 30} {
			rng := rand.New(rand.NewPCG(1, 1))
			data := newBuffer(b, nil)
			src := must1(buffer.NewRecords(data, nil))
			for range total / size {
				p := must1(src.Append(size))
				fillRandom(p, rng)
				if prefixes > 0 {
					same := p[:size-16]
					copy(same, bytes.Repeat([]byte{byte(rng.IntN(prefixes))}, len(same)))
				}
			}
			for by, sort := range sorts {
				b.Run(fmt.Sprintf("recordBytes=%d/prefixes=%d/by=%s", size, prefixes, by), func(b *testing.B) {
					buf := newBuffer(b, nil)
					for b.Loop() {
						b.StopTimer()
						buf.Clear()
						must1(data.WriteTo(buf))
						r := must1(buffer.NewRecords(buf, nil))
						b.StartTimer()
						must(b, sort(r))
					}
				})
			}
		}
	}
}
