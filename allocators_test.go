// Allocators that the tests of this package build on.

package freehold_test

import (
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/panics"
)

// plain hides that an allocator is an Owner.
type plain struct{ freehold.Allocator }

// mover's Resize always succeeds, at another address, as remapping does. The old
// address reads 0xDB.
type mover struct{ *alloctest.Allocator }

func (m mover) Resize(b []byte, size int) ([]byte, bool) {
	if len(b) == 0 || size <= 0 {
		return m.Allocator.Resize(b, size)
	}
	r, err := m.Alloc(size, 4096)
	if err != nil {
		return nil, false
	}
	copy(r, b)
	m.Free(b)
	return r, true
}

// roomy's Resize grows in place, up to 64 KiB.
type roomy struct {
	*alloctest.Allocator
	whole map[*byte][]byte
}

const roomyBytes = 64 << 10

func newRoomy(t testing.TB) *roomy {
	return &roomy{alloctest.New(t), map[*byte][]byte{}}
}

func (r *roomy) Alloc(size, align int) ([]byte, error) {
	w, err := r.Allocator.Alloc(max(size, min(size, 1)*roomyBytes), align)
	if size <= 0 || err != nil {
		return w, err
	}
	r.whole[&w[0]] = w
	return w[:size:size], nil
}

func (r *roomy) Zeroed(size, align int) ([]byte, error) {
	b, err := r.Alloc(size, align)
	clear(b)
	return b, err
}

func (r *roomy) Resize(b []byte, size int) ([]byte, bool) {
	switch {
	case size < 0:
		return r.Allocator.Resize(nil, size) // which panics
	case size == 0:
		r.Free(b)
		return []byte{}, true
	case len(b) == 0 || size > len(r.whole[&b[0]]):
		return nil, false
	}
	return r.whole[&b[0]][:size:size], true
}

func (r *roomy) Free(b []byte) {
	if len(b) > 0 && r.whole[&b[0]] != nil {
		w := r.whole[&b[0]]
		delete(r.whole, &b[0])
		b = w
	}
	r.Allocator.Free(b)
}

// slot is an allocator of one block, at no cost.
type slot struct{ mem []byte }

func newSlot() *slot { return &slot{make([]byte, 64<<10)} }

func (s *slot) Alloc(size, align int) ([]byte, error) { return s.mem[:size:size], nil }

func (s *slot) Zeroed(size, align int) ([]byte, error) {
	clear(s.mem[:size])
	return s.mem[:size:size], nil
}

func (s *slot) Resize(b []byte, size int) ([]byte, bool) { return s.mem[:size:size], true }
func (s *slot) Free(b []byte)                            {}
func (s *slot) Owns(b []byte) bool                       { return len(b) > 0 }

var wantPanic = panics.Want
