package keyed

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/lab/bench/measure"
)

// A trace is a file of requests, and how many entries a cache may have room for.
type trace struct {
	file    string
	each    func(r io.Reader, request func(key uint64)) error
	entries []int
}

var traces = []trace{
	{"oltp.gz", arcTrace, []int{1_000, 2_000, 4_000, 8_000, 16_000}},
	{"p3.gz", arcTrace, []int{12_500, 25_000, 50_000, 100_000, 200_000}},
	{"scarab-recs.trace", wordTrace, []int{5_000, 10_000, 20_000, 40_000, 80_000}},
}

// arcTrace reads lines of a first key and how many follow.
func arcTrace(r io.Reader, request func(uint64)) error {
	z, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	for {
		var first, n, a, b uint64
		switch _, err := fmt.Fscanln(z, &first, &n, &a, &b); err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
		for i := range n {
			request(first + i)
		}
	}
}

// wordTrace reads words of 8 bytes, the high byte first.
func wordTrace(r io.Reader, request func(uint64)) error {
	for {
		var w [8]byte
		switch _, err := io.ReadFull(r, w[:]); err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
		request(binary.BigEndian.Uint64(w[:]))
	}
}

// BenchmarkHits has the hit ratios of recorded requests: each key that is not found is set. Values
// have 1,000 bytes, and the bound is the bytes of that number of keys and values. The traces come
// from the simulator of github.com/maypok86/otter, in the folder that FREEHOLD_TRACES names,
// unpacked if they end in .xz.
func BenchmarkHits(b *testing.B) {
	dir := os.Getenv("FREEHOLD_TRACES")
	for _, tr := range traces {
		for _, entries := range tr.entries {
			name := fmt.Sprintf("trace=%s/entries=%d", strings.SplitN(tr.file, ".", 2)[0], entries)
			for _, p := range caches {
				if p.name == "fastcache" || p.name == "bigcache" {
					continue // they have tens of MB, whatever their bound
				}
				if p.name == "otter" { // else it loses what comes faster than its goroutines evict
					p.make = otterCache(func(f func()) { f() })
				}
				measure.Run(b, name, p.name, func(b *testing.B) {
					if dir == "" {
						b.Skip("FREEHOLD_TRACES names no folder with traces")
					}
					c := p.make(entries*(cacheKeyBytes+mostValueBytes), entries)
					defer c.close()
					tr.replay(b, filepath.Join(dir, tr.file), c)
				})
			}
		}
	}
}

func (tr trace) replay(b *testing.B, path string, c cacheOf) {
	f, err := os.Open(path)
	if err != nil {
		b.Skip(err)
	}
	defer f.Close()
	var room [cacheKeyBytes]byte
	value := make([]byte, 0, mostValueBytes)
	requests, hits := 0, 0
	measure.Once(b, 1, func() {
		must(tr.each(bufio.NewReader(f), func(key uint64) {
			requests++
			k := cacheKey(&room, key)
			if _, ok := c.get(value, k); ok {
				hits++
			} else {
				c.set(k, cacheValue[:])
			}
		}))
	})
	b.ReportMetric(float64(hits)/float64(requests), "hits/request")
}
