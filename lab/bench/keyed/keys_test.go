// Keys: numbers and strings that look random and are all different.

package keyed

import (
	"encoding/binary"
	"unsafe"

	"github.com/freehold-go/freehold/lab/bench/measure"
)

// keyOf is the finalizer of SplitMix64, which is a bijection.
// https://prng.di.unimi.it/splitmix64.c
func keyOf(i uint64) uint64 {
	i += 0x9E3779B97F4A7C15
	i = (i ^ i>>30) * 0xBF58476D1CE4E5B9
	i = (i ^ i>>27) * 0x94D049BB133111EB
	return i ^ i>>31
}

// A source makes the next keys of a sequence.
type source[K any] struct {
	next func(batch []K)
	room *[batchKeys]K
}

// batchKeys is how many keys are made at once.
const batchKeys = 256

// each calls do for the next n keys in batches. The first key of a batch has the number i.
func (s source[K]) each(n int, do func(i int, batch []K)) {
	for i := 0; i < n; i += batchKeys {
		batch := s.room[:min(n-i, batchKeys)]
		s.next(batch)
		do(i, batch)
	}
}

// An order is a sequence of keys: n of them from a first one on, one after the other or each of
// them at random, which is another sequence for each seed.
type order struct {
	from, n uint64
	random  bool
	seed    int
}

func (o order) numbers() source[uint64] {
	rnd := measure.Random(3 + o.seed)
	return source[uint64]{func(batch []uint64) {
		for i := range batch {
			batch[i] = keyOf(o.next(&rnd))
		}
	}, new([batchKeys]uint64)}
}

// next advances o, which the source has for itself.
func (o *order) next(rnd *measure.Random) uint64 {
	if o.random {
		return o.from + measure.Below(rnd.Next(), o.n)
	}
	o.from++
	return o.from - 1
}

const (
	stringBytes = 16        // of a key
	lookups     = 4_000_000 // strings that are made at most, if at random
)

// texts makes all strings beforehand, side by side in the order in which they are used, and
// begins again after the last one: a key that is made just before its lookup would be measured
// with it.
func (o order) texts() source[string] {
	rnd, at, count := measure.Random(3+o.seed), 0, o.n
	if o.random {
		count = min(count, lookups)
	}
	all := make([]byte, 0, count*stringBytes)
	for range count {
		x := o.next(&rnd)
		all = binary.LittleEndian.AppendUint64(all, keyOf(x))
		all = binary.LittleEndian.AppendUint64(all, keyOf(^x))
	}
	return source[string]{func(batch []string) {
		for i := range batch {
			batch[i] = unsafe.String(&all[at], stringBytes)
			if at += stringBytes; at == len(all) {
				at = 0
			}
		}
	}, new([batchKeys]string)}
}
