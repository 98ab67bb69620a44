// Handover: one goroutine allocates, another frees.
//
// Blocks travel in batches of 256 through a ring of 16, so that the hand-over itself costs
// little; the peer loop-go shows how little. With read=1 the consumer looks at each block's first
// byte, as a consumer would: then every allocator's blocks cross from one processor's cache to
// the other's, and the allocators look more alike.

package alloc

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/freehold-go/freehold/lab/bench/measure"
)

const (
	ringSlots  = 16
	batchSize  = 256
	spinRounds = 1000 // before giving the processor away
)

// A ring has one producer, which alone writes head, and one consumer, which
// alone writes tail; head - tail batches are full.
type ring struct {
	head atomic.Uint64
	_    [120]byte
	tail atomic.Uint64
	_    [120]byte
	done atomic.Bool
	_    [124]byte

	batches [ringSlots][batchSize]block
}

func BenchmarkHandover(b *testing.B) {
	for _, how := range []struct {
		sizes
		read int
	}{{sizes{64, 64}, 0}, {sizes{16, 1039}, 0}, {sizes{64, 64}, 1}} {
		measure.Run(b, fmt.Sprintf("%v/read=%d", how.sizes, how.read), peer, func(b *testing.B) {
			several = true
			r, freed := &ring{}, make(chan struct{})
			go func() { r.consume(how.read == 1); close(freed) }()
			measure.Loops(b, 1, batchSize, func(int) measure.Loop { return r.producer(how.sizes) })
			r.done.Store(true)
			<-freed
		})
	}
}

//go:noinline
func (r *ring) producer(s sizes) measure.Loop {
	rnd, least, span := measure.Seed(0), uint64(s[0]), uint64(s[1]-s[0]+1)
	return func(n int) (sum uint64) {
		for range n {
			head := r.head.Load()
			for spins := 0; head-r.tail.Load() == ringSlots; spins++ {
				if spins >= spinRounds {
					runtime.Gosched()
				}
			}
			blocks := &r.batches[head%ringSlots]
			for i := range blocks {
				size := measure.From(rnd.Next(), least, span)
				b := must(alloc(int(size)))
				touch(b)
				blocks[i] = b
				sum += size
			}
			r.head.Store(head + 1)
		}
		return sum
	}
}

func (r *ring) consume(read bool) {
	for spins := 0; ; {
		tail := r.tail.Load()
		done := r.done.Load() // before head: nothing is full after done
		if r.head.Load() == tail {
			if done {
				return
			}
			if spins++; spins >= spinRounds {
				runtime.Gosched()
			}
			continue
		}
		spins = 0
		for _, b := range &r.batches[tail%ringSlots] {
			if read && first(b) != 1 {
				panic("a block lost its byte on the way")
			}
			free(b)
		}
		r.tail.Store(tail + 1)
	}
}
