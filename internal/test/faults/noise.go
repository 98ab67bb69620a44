//go:build linux

package faults

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"
)

// Noise returns random bytes, the same at each call. Tests cut their data from them.
var Noise = sync.OnceValue(func() []byte {
	b := make([]byte, 8<<20)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(b)
	return b
})

// Same checks that got equals want.
func Same(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		t.Errorf("%s: %d bytes that differ at %d from the %d that it should have", what, len(got), at, len(want))
	}
}
