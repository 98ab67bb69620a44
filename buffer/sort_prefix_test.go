// Sorts of keys that have much in common.

package buffer_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/freehold-go/freehold/buffer"
)

// prefixed returns n records of a prefix, of which there are that many, and a tail of
// 0 to 11 bytes. Some are equal, and some are the beginning of others.
func prefixed(rng *rand.Rand, n, prefixBytes, prefixes int) [][]byte {
	records := make([][]byte, n)
	for i := range records {
		p := bytes.Repeat([]byte{byte(rng.IntN(prefixes))}, prefixBytes)
		p = append(p, random(rng, rng.IntN(12))...)
		if i > 0 && rng.IntN(10) == 0 {
			p = records[rng.IntN(i)]
		}
		records[i] = p
	}
	return records
}

func TestSortsOfLongPrefixes(t *testing.T) {
	b := newBuffer(t, nil)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{1, 7, 8, 9, 15, 16, 17, 23, 24, 25, 100, 1000} {
		for _, prefixes := range []int{1, 2, 30} {
			for _, n := range []int{2, 24, 25, 500} {
				records := prefixed(rng, n, size, prefixes)
				for _, by := range sortings(0) {
					wantSorted(t, b, nil, records, by, &buffer.SortOptions{Parallel: 1 + rng.IntN(3)})
				}
			}
		}
	}
}

// What the keys of a group have in common is read once, not in steps.
func TestCommonPrefixesAreSkipped(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, prefixes := range []int{1, 30} {
		t.Run(fmt.Sprintf("prefixes=%d", prefixes), func(t *testing.T) {
			const n, mostCalls = 1000, 20 // for each record; in steps of 8 bytes there are 250
			var calls atomic.Int64
			by := sorting{"counted", func(r *buffer.Records, o *buffer.SortOptions) error {
				return r.SortBy(context.Background(), func(p []byte) []byte { calls.Add(1); return p }, o)
			}, bytes.Compare}
			wantSorted(t, newBuffer(t, nil), nil, prefixed(rng, n, 1000, prefixes), by, &buffer.SortOptions{Parallel: 2})
			if calls.Load() > n*mostCalls {
				t.Errorf("%d calls of key for %d records, want %d for each at most", calls.Load(), n, mostCalls)
			}
		})
	}
}
