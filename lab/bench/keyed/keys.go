// Keys: numbers and strings that look random and are all different.

package main

import (
	"encoding/binary"
	"unsafe"

	"github.com/freehold-go/freehold/lab/bench/random"
)

// keyOf is the finalizer of SplitMix64, which is a bijection.
// https://prng.di.unimi.it/splitmix64.c
func keyOf(i uint64) uint64 {
	i += 0x9E3779B97F4A7C15
	i = (i ^ i>>30) * 0xBF58476D1CE4E5B9
	i = (i ^ i>>27) * 0x94D049BB133111EB
	return i ^ i>>31
}

// below returns a random number below n, which is below 2^32.
func below(r *random.State, n uint64) uint64 { return r.Next() >> 32 * n >> 32 }

// stringBytes is the length of a string key.
const stringBytes = 16

// stringKeys are strings side by side, in the order in which they are used: a key that
// is made just before its lookup would be measured with it.
type stringKeys []byte

// newStringKeys returns count keys, of which number(i) says which.
func newStringKeys(count int, number func(i int) uint64) stringKeys {
	k := make(stringKeys, 0, count*stringBytes)
	for i := range count {
		x := number(i)
		k = binary.LittleEndian.AppendUint64(k, keyOf(x))
		k = binary.LittleEndian.AppendUint64(k, keyOf(^x))
	}
	return k
}

func (k stringKeys) len() int { return len(k) / stringBytes }

func (k stringKeys) at(i int) string {
	return unsafe.String(&k[i*stringBytes], stringBytes)
}

// inOrder is the number of the i-th key to insert.
func inOrder(i int) uint64 { return uint64(i) }

// lookups is how many operations are measured at most.
const lookups = 4_000_000

// hits returns keys of the first n, at random.
func hits(n int) stringKeys {
	rnd := random.State(3)
	return newStringKeys(min(n, lookups), func(int) uint64 { return below(&rnd, uint64(n)) })
}

// misses returns keys beyond the first n.
func misses(n int) stringKeys {
	return newStringKeys(min(n, lookups), func(i int) uint64 { return uint64(n + i) })
}
