// Package keysort is the part of sorting that packages buffer and extsort share: a radix sort of
// references to keys by 8-byte words, and the passing of goroutines' panics to the caller.
package keysort

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"runtime"
)

// Word returns key[depth:depth+8] as a big-endian number, with zeros after the key's end. Keys
// that differ in their words have the order of their words. Keys with equal words may still
// differ in length.
func Word(key []byte, depth int) uint64 {
	if len(key) >= depth+8 {
		return binary.BigEndian.Uint64(key[depth:])
	}
	var b [8]byte
	if depth < len(key) {
		copy(b[:], key[depth:])
	}
	return binary.BigEndian.Uint64(b[:])
}

// Common returns the length of the common prefix of a and b.
func Common(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for i+8 <= n {
		if x := Word(a, i) ^ Word(b, i); x != 0 {
			return i + bits.LeadingZeros64(x)/8
		}
		i += 8
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// A Panic is a goroutine's panic as an error, on its way to the caller.
type Panic struct {
	value any // nil for runtime.Goexit
}

func (p *Panic) Error() string { return fmt.Sprint("panic: ", p.value) }

// Catch calls f. It passes f's error, or its panic as a [Panic], to failed. It does not return
// if f calls runtime.Goexit.
func Catch(f func() error, failed func(error)) {
	returned := false
	defer func() {
		if !returned {
			failed(&Panic{recover()})
		}
	}()
	err := f()
	returned = true
	if err != nil {
		failed(err)
	}
}

// Pass returns err, but raises the panic if err is a [Panic].
func Pass(err error) error {
	var p *Panic
	if !errors.As(err, &p) {
		return err
	}
	if p.value == nil {
		runtime.Goexit()
	}
	panic(p.value)
}
