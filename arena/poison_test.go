//go:build !asan

package arena

import (
	"bytes"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/poison"
)

const late = "freehold: arena.Arena: the byte at ... was written while no block held it: after a Free, Rewind or Reset, or beyond the end of a block"

// The bytes of an ended block are poison, and the next allocation there finds a write to
// them, or Close.
func TestUseAfterTheEndOfABlock(t *testing.T) {
	defer poison.Set(true)()
	for name, end := range map[string]func(a *Arena, m Mark, b []byte){
		"Rewind": func(a *Arena, m Mark, b []byte) { a.Rewind(m) },
		"Reset":  func(a *Arena, m Mark, b []byte) { a.Reset() },
		"Free":   func(a *Arena, m Mark, b []byte) { a.Free(b) },
		"Resize": func(a *Arena, m Mark, b []byte) { a.Resize(b, 0) },
	} {
		for _, size := range []int{1, 64, 5000} { // in the first chunk, and in a dedicated one
			for _, align := range []int{1, 64} {
				a := New(alloctest.New(t), nil)
				freehold.Must(a.Alloc(3, 1))
				m := a.Mark()
				b := freehold.Must(a.Alloc(size, align))
				setAll(b, 1)
				end(a, m, b)
				mustBeFilled(t, b, name)
				if size < 5000 || name == "Rewind" || name == "Reset" { // the chunk gets further blocks
					b[size/2] = 1
					wantPanic(t, late, func() {
						for range 10000 {
							a.Alloc(1, 1)
						}
					})
					b[size/2] = poison.Fill
				}
				a.Close()
			}
		}
	}
}

func mustBeFilled(t *testing.T, b []byte, after string) {
	t.Helper()
	if n := bytes.Count(b, []byte{poison.Fill}); n != len(b) {
		t.Errorf("%s: %d of %d bytes are filled", after, n, len(b))
	}
}

// Writes are found where no block is, or is any longer.
func TestWritesOutsideOfBlocks(t *testing.T) {
	defer poison.Set(true)()
	a := New(alloctest.New(t), nil)
	first, second := freehold.Must(a.Alloc(8, 8)), freehold.Must(a.Alloc(8, 8))
	setAll(first, 1)
	a.Resize(first, 4)
	mustBeFilled(t, first[4:], "Resize of a block before others")
	a.Free(first[:4:4])
	mustBeFilled(t, first, "Free of a block before others")
	second, _ = a.Resize(second, 4)
	beyond := a.bytes(a.top, a.top+1)
	mustBeFilled(t, beyond, "Resize")
	beyond[0] = 1
	wantPanic(t, late, func() { a.Zeroed(8, 8) })
	wantPanic(t, late, func() { a.Resize(second, 8) })
	beyond[0] = poison.Fill
	a.Reset()
	beyond[0] = 1
	wantPanic(t, late, a.Close)
	beyond[0] = poison.Fill
	a.Close()
}

// What fills free memory again looks at it first.
func TestWritesOutsideOfBlocksAreFoundByTheEndOfAll(t *testing.T) {
	defer poison.Set(true)()
	for _, end := range []func(a *Arena, empty Mark){
		func(a *Arena, empty Mark) { a.Rewind(empty) },
		func(a *Arena, empty Mark) { a.Reset() },
		func(a *Arena, empty Mark) { a.Close() },
	} {
		a := New(alloctest.New(t), nil)
		m := a.Mark()
		b := freehold.Must(a.Alloc(8, 8))
		a.Free(b)
		b[0] = 1
		wantPanic(t, late, func() { end(a, m) })
		b[0] = poison.Fill
		a.Close()
	}
}

// A write behind the top of a mark is found after a Rewind to it, also if newer blocks at the
// mark have been freed since.
func TestWriteAfterARewindBeyondTheTop(t *testing.T) {
	defer poison.Set(true)()
	a := New(alloctest.New(t), nil)
	b := freehold.Must(a.Alloc(8, 8))
	m := a.Mark()
	a.Free(b)
	a.Rewind(m)
	beyond := a.bytes(a.top, a.top+1)
	beyond[0] = 1
	wantPanic(t, late, func() { a.Alloc(8, 8) })
	beyond[0] = poison.Fill
	a.Close()
}

// The parent gets the memory back filled, and a closed parent is found before its memory
// is touched.
func TestCloseOfACheckedArena(t *testing.T) {
	defer poison.Set(true)()
	heap := freehold.NewHeap(nil)
	a, late := New(heap, nil), New(heap, nil)
	b := freehold.Must(a.Alloc(100, 1))
	freehold.Must(late.Alloc(100, 1))
	a.Close()
	mustBeFilled(t, b, "Close")
	heap.Close()
	wantPanic(t, "freehold: ...is closed", late.Close)
}

// A read after Reset finds the fill, or the block if a guard protects it.
func TestStaleReadsOfASharedShow(t *testing.T) {
	defer poison.Set(true)()
	s := newSharedOver(t, alloctest.New(t), nil)
	for _, size := range []int{100, 1 << 20} { // in the processor's chunk, and in a dedicated one
		b := freehold.Must(s.Zeroed(size, 8))
		g := s.Enter()
		s.Reset()
		if bytes.Count(b, []byte{0}) != size {
			t.Error("a block under a guard has changed")
		}
		g.Leave()
		s.Reset()
		mustBeFilled(t, b, "Reset")
		if z := freehold.Must(s.Zeroed(size, 8)); bytes.Count(z, []byte{0}) != size {
			t.Error("Zeroed is not zero")
		}
	}
}
