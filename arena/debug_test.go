//go:build freehold_debug

package arena

import (
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

const late = "freehold: arena.Arena: the byte at ... was written while no block held it: after a Free, Rewind or Reset, or beyond the end of a block"

// TestUseAfterTheEndOfABlock: the bytes of an ended block are poison, and the
// next allocation there finds a write to them.
func TestUseAfterTheEndOfABlock(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(a *Arena, m Mark, b []byte)
	}{
		{"Rewind", func(a *Arena, m Mark, b []byte) { a.Rewind(m) }},
		{"Reset", func(a *Arena, m Mark, b []byte) { a.Reset() }},
		{"Free", func(a *Arena, m Mark, b []byte) { a.Free(b) }},
		{"Resize", func(a *Arena, m Mark, b []byte) { a.Resize(b, 0) }},
	} {
		for _, size := range []int{1, 64, 5000} { // in the first chunk, and in a dedicated one
			for _, align := range []int{1, 64} {
				a := New(alloctest.New(t), nil)
				freehold.Must(a.Alloc(3, 1))
				m := a.Mark()
				b := freehold.Must(a.Alloc(size, align))
				setAll(b, 1)
				c.end(a, m, b)
				for i := range b {
					if b[i] != poisonByte {
						t.Fatalf("%s of %d bytes: byte %d is %#x", c.name, size, i, b[i])
					}
				}
				if inPlace := c.name == "Free" || c.name == "Resize"; inPlace && size == 5000 {
					a.Close() // the chunk is still in use, and gets no further block
					continue
				}
				b[size/2] = 1
				again := func() {
					for range 10000 {
						a.Alloc(1, 1)
					}
				}
				wantPanic(t, late, again)
				b[size/2] = poisonByte
				a.Close()
			}
		}
	}
}

func TestWriteAfterFreeInTheMiddle(t *testing.T) {
	a := New(alloctest.New(t), nil)
	first := freehold.Must(a.Alloc(8, 8))
	freehold.Must(a.Alloc(8, 8))
	a.Free(first)
	if first[0] != poisonByte {
		t.Error("a freed block is not filled")
	}
	a.Close()
}

func TestWriteBeyondTheEnd(t *testing.T) {
	a := New(alloctest.New(t), nil)
	b := freehold.Must(a.Alloc(3, 1))
	_ = a.bytes(a.top, a.top+1)[0]
	a.bytes(a.top, a.top+1)[0] = 1 // b[3] of the ended block
	wantPanic(t, late, func() { a.Zeroed(8, 8) })
	a.bytes(a.top, a.top+1)[0] = poisonByte
	setAll(b, 0)
	a.Close()
}

func TestWriteAfterResetIsFoundByClose(t *testing.T) {
	a := New(alloctest.New(t), nil)
	b := freehold.Must(a.Alloc(100, 1))
	a.Reset()
	b[50] = 1
	wantPanic(t, late, a.Close)
	b[50] = poisonByte
	a.Close()
}

func TestUseAfterCloseReadsPoison(t *testing.T) {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	a := New(heap, nil)
	b := freehold.Must(a.Alloc(100, 1))
	setAll(b, 1)
	a.Close()
	if b[99] != poisonByte {
		t.Errorf("%#x", b[99])
	}
}
