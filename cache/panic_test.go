package cache

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/freehold-go/freehold/internal/cuckoo"
	"github.com/freehold-go/freehold/internal/panics"
)

// A bomb is a cache whose OnEvict panics at the call that brings left to 0.
type bomb struct {
	*Cache
	left int // calls of OnEvict
	next int // key of crowd
	told map[string]int
}

func newBomb(t *testing.T, maxBytes int) *bomb {
	b := &bomb{told: map[string]int{}}
	b.Cache = newShared(t, Options{MaxBytes: maxBytes, OnEvict: func(key []byte, _ Entry, _ Reason) {
		b.told[string(key)]++
		if b.left--; b.left == 0 {
			panic("OnEvict")
		}
	}})
	b.sweeper.stop() // a sweep would lock shards
	return b
}

// fill stores n entries of a size.
func (b *bomb) fill(n, size int) {
	for i := range n {
		key := fmt.Append(nil, i)
		delete(b.told, string(key))
		must(0, b.Set(key, make([]byte, size)))
	}
}

// crowd makes the index of each shard two chunks large, and stores entries with homes in the last
// quarter of each chunk: percent of the slots there. For more than 50, homes are missing once the
// second chunk is gone. For more than 100, they are missing at once.
func (b *bomb) crowd(percent int) {
	n := b.segmentBytes / cuckoo.BucketBytes // of one chunk
	s := &b.shards[0]
	for i := range b.shards {
		b.shards[i].growIndex(2*n*cuckoo.Slots*84/100 - b.shards[i].index.Len())
	}
	number := map[*cuckoo.Bucket]int{}
	for i := range s.index.Buckets() {
		number[s.index.Bucket(i)] = int(i) % n
	}
	for todo := len(b.shards) * n / 2 * cuckoo.Slots * percent / 100; todo > 0; b.next++ {
		key := fmt.Append(nil, b.next)
		if one, two := s.index.Homes(tagOf(b.seed.Bytes(key))); min(number[one], number[two]) >= n*3/4 {
			must(0, b.Set(key, nil))
			todo--
		}
	}
}

// TestOnEvictPanicsAnywhere: a panic of OnEvict leaves all counts right, no lock held, no Restore
// under way, and each entry told once at most.
func TestOnEvictPanicsAnywhere(t *testing.T) {
	const bound = 8 << 20
	var empty bytes.Buffer
	must(0, newCache(t, Options{}).Snapshot(&empty))
	crowd := func(b *bomb) { b.crowd(70) }
	grown := func(b *bomb) { // half of it is index
		b.shards[0].growIndex(1 << 20)
		b.fill(4000, 100)
	}
	for name, test := range map[string]struct {
		bound    int
		fill, do func(b *bomb)
	}{
		"Set":     {bound, func(b *bomb) { b.fill(9000, 1000) }, func(b *bomb) { b.fill(1000, 900) }},
		"loan":    {bound, func(b *bomb) { b.fill(9000, 1000) }, func(b *bomb) { b.Set([]byte("large"), make([]byte, 3<<20)) }},
		"index":   {1 << 20, grown, func(b *bomb) { b.Set([]byte("large"), make([]byte, b.MaxEntry()-100)) }},
		"link":    {bound, crowd, crowd},
		"Resize":  {bound, func(b *bomb) { b.fill(9000, 1000) }, func(b *bomb) { b.Resize(bound / 4) }},
		"shrinks": {bound, crowd, func(b *bomb) { b.Resize(bound - 1) }},
		"Restore": {bound, crowd, func(b *bomb) { must(0, b.Restore(bytes.NewReader(empty.Bytes()))) }},
	} {
		t.Run(name, func(t *testing.T) {
			for n, over := 1, false; !over; n = n*4 + 1 {
				b := newBomb(t, test.bound)
				test.fill(b)
				clear(b.told)
				b.left = n
				func() {
					defer func() { over = recover() == nil }()
					test.do(b)
				}()
				if n == 1 && over {
					t.Error("OnEvict is not called")
				}
				for i := range b.shards {
					s := &b.shards[i]
					if !s.mu.TryLock() {
						t.Fatalf("call %d: shard %d is locked", n, i)
					}
					s.mu.Unlock()
					if s.loads.n.Load() != 0 {
						t.Errorf("call %d: shard %d has a Restore under way", n, i)
					}
				}
				if wrong := panics.Of(b.check); wrong != "" {
					t.Errorf("call %d: %s", n, wrong)
				}
				for key, times := range b.told {
					if times > 1 {
						t.Errorf("call %d: OnEvict was told %d times of %s", n, times, key)
					}
				}
			}
		})
	}
}
