package memcached

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cache"
)

// A replay is a connection whose client sends the same batches again and again, and drops the
// replies.
type replay struct {
	batches [][]byte
	n, of   int
}

func (r *replay) Read(p []byte) (int, error) {
	if r.n == r.of {
		return 0, io.EOF
	}
	r.n++
	return copy(p, r.batches[r.n%len(r.batches)]), nil
}

func (r *replay) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkSession measures a command without the network: pipelined reads of random keys of a
// million, in batches.
func BenchmarkSession(b *testing.B) {
	const items = 1_000_000
	c := cache.New(freehold.Pages(), &cache.Options{MaxBytes: 512 << 20, Access: true})
	defer c.Close()
	for i := range items {
		if err := c.Set(fmt.Appendf(nil, "key-%08d", i), make([]byte, 100)); err != nil {
			b.Fatal(err)
		}
	}
	s := New(c, Options{MaxItem: 1 << 20, Heap: freehold.Pages(), Buffers: 16 << 20})
	for _, command := range []string{"mg %s v\r\n", "get %s\r\n"} {
		for _, inFlight := range []int{1, 16, 100} {
			b.Run(fmt.Sprintf("command=%.3s/inflight=%d", command, inFlight), func(b *testing.B) {
				r := &replay{batches: make([][]byte, items/inFlight)}
				for i := range r.batches {
					for range inFlight {
						r.batches[i] = fmt.Appendf(r.batches[i], command, fmt.Sprintf("key-%08d", rand.IntN(items)))
					}
				}
				r.of = b.N/inFlight + 1
				b.ResetTimer()
				s.Session(r)
			})
		}
	}
}
