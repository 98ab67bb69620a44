// Package keysort has what the sorts of packages buffer and extsort share: keys as words of 8
// bytes, entries that refer to keys and their sort, and goroutines whose panics reach the caller.
package keysort

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"runtime"
)

// Word returns key[depth:depth+8] as a big-endian number, with zeros after the key's end. Words
// are in the order of keys; where they are equal, a key may have ended.
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

// Common returns how many bytes a and b begin with in common.
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

// A Panic is a panic of a goroutine, as an error on its way to the caller.
type Panic struct {
	value any // nil for runtime.Goexit
}

func (p *Panic) Error() string { return fmt.Sprint("panic: ", p.value) }

// Catch calls f, and failed with its error or with its panic as a [Panic]. It does not return
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

// Pass returns err unless it is a [Panic], with which it panics.
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
