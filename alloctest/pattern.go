// Patterns: bytes that the tests write into blocks to detect foreign writes.

package alloctest

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"sync/atomic"
)

// A pattern is an index into noise, repeated endlessly. Two patterns agree on a run
// of bytes by chance only.
type pattern int

// noise has a prime length, so no block size, alignment or stride divides it. It is
// the same in each run.
var noise = func() []byte {
	b := make([]byte, 65521)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}()

var patterns atomic.Uint32 // number of patterns so far

// newPattern returns a pattern that differs from all recent ones, in any goroutine.
func newPattern() pattern { return pattern(patterns.Add(1) * 7919 % uint32(len(noise))) }

// fill writes the start of the pattern to b.
func (p pattern) fill(b []byte) {
	from := noise[p:]
	for len(b) > 0 {
		b = b[copy(b, from):]
		from = noise
	}
}

// damage returns the index of the first byte of b, at or after index from, that
// differs from the pattern, or -1. The pattern begins at index 0 of b.
func (p pattern) damage(b []byte, from int) int {
	at := (int(p) + from) % len(noise)
	for i := from; i < len(b); {
		want := noise[at:]
		want = want[:min(len(want), len(b)-i)]
		if !bytes.Equal(b[i:i+len(want)], want) {
			return i + mismatch(b[i:i+len(want)], want)
		}
		i += len(want)
		at = 0
	}
	return -1
}

// damagedEdge is damage for the first and last 64 bytes only.
func (p pattern) damagedEdge(b []byte) int {
	if i := p.damage(b[:min(64, len(b))], 0); i >= 0 {
		return i
	}
	return p.damage(b, max(0, len(b)-64))
}

// mismatch returns the index of the first byte where b differs from want.
func mismatch(b, want []byte) int {
	for i := range b {
		if b[i] != want[i] {
			return i
		}
	}
	return -1
}

// addrOf returns the address of b's first byte.
func addrOf(b []byte) uintptr { return reflect.ValueOf(b).Pointer() }
