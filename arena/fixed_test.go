package arena

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

func TestFixedConformance(t *testing.T) {
	alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
		a := NewFixed(make([]byte, 16<<20))
		t.Cleanup(a.Close)
		return a
	}, &alloctest.Options{MaxSize: 4 << 10, MaxAlign: 4 << 10, Detects: alloctest.ForeignFree})
}

// TestFixedHasItsBufferAndNoMore: an arena uses all of its buffer, whatever its
// address. A block that does not fit is out of memory and changes nothing.
func TestFixedHasItsBufferAndNoMore(t *testing.T) {
	for _, from := range []int{0, 1, 63} {
		buf := make([]byte, 1000+from, 2000)[from:]
		setAll(buf, 1)
		a := NewFixed(buf)
		if got, want := a.Stats(), (Stats{Reserved: 1000, Chunks: 1, MaxBytes: 1000}); got != want || a.Remaining() != 1000 {
			t.Errorf("%+v with %d bytes remaining, want %+v with 1000", got, a.Remaining(), want)
		}
		for range 3 {
			whole := freehold.Must(a.Zeroed(1000, 1))
			if addressOf(whole) != addressOf(buf) || len(whole) != 1000 || cap(whole) != 1000 {
				t.Errorf("the whole buffer is not one block: %d bytes", len(whole))
			}
			for i, c := range whole {
				if c != 0 {
					t.Fatalf("byte %d of a zeroed block is %#x", i, c)
				}
			}
			setAll(whole, 2)
			a.Reset()
			first := freehold.Must(a.Alloc(10, 1))
			setAll(first, 3)
			before := a.Stats()
			for _, c := range []struct{ size, align int }{{991, 1}, {990, 1 << 20}, {1 << 30, 8}} {
				b, err := a.Alloc(c.size, c.align)
				if b != nil || !errors.Is(err, freehold.ErrOutOfMemory) {
					t.Errorf("Alloc(%d, %d): %d bytes, %v", c.size, c.align, len(b), err)
				}
			}
			if err := a.Reserve(991); !errors.Is(err, freehold.ErrOutOfMemory) {
				t.Errorf("Reserve of more than remains: %v", err)
			}
			if err := a.Reserve(990); err != nil {
				t.Errorf("Reserve of what remains: %v", err)
			}
			if _, ok := a.Resize(first, 1001); ok {
				t.Error("a block has grown beyond the buffer")
			}
			if a.Stats() != before || a.Remaining() != 990 {
				t.Errorf("%+v with %d bytes remaining, was %+v", a.Stats(), a.Remaining(), before)
			}
			m := a.Mark()
			freehold.Must(a.Alloc(990, 1))
			if a.Remaining() != 0 {
				t.Errorf("%d bytes remain of a full buffer", a.Remaining())
			}
			a.Rewind(m)
			a.Trim()
			a.TrimTo(0)
			a.check(t)
			a.Reset()
			a.Trim()
			if a.Remaining() != 1000 {
				t.Errorf("%d bytes remain of an empty buffer", a.Remaining())
			}
		}
		_, err := a.Alloc(1001, 8)
		if want := "freehold: out of memory: a block of 1001 bytes at a multiple of 8 does not fit the arena, which has 1000 left of 1000"; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		a.Close()
		a.Close()
		if a.Owns(buf) || a.Stats().Reserved != 0 || a.Remaining() != 0 {
			t.Errorf("after Close: %+v", a.Stats())
		}
		wantPanic(t, "freehold: arena.Arena.Alloc: the arena is closed", func() { a.Alloc(1, 1) })
		setAll(buf, 4) // the caller's bytes
	}
}

func TestFixedWithoutBytes(t *testing.T) {
	for _, buf := range [][]byte{nil, {}} {
		a := NewFixed(buf)
		if b, err := a.Alloc(1, 1); b != nil || !errors.Is(err, freehold.ErrOutOfMemory) {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		if b, err := a.Alloc(0, 1); b == nil || err != nil {
			t.Errorf("an empty block: %v", err)
		}
		a.Reset()
		a.Trim()
		a.Close()
	}
}

// TestFixedKeepsItsBuffer: the collector does not free the buffer, and it is not on a
// stack, which may move.
func TestFixedKeepsItsBuffer(t *testing.T) {
	var array [1 << 10]byte
	a := NewFixed(array[:])
	b := freehold.Must(a.Alloc(8, 8))
	setAll(b, 7)
	grow(1000)
	runtime.GC()
	for i, c := range freehold.Must(a.Alloc(1000, 8)) {
		if c != 0 && !a.checked {
			t.Fatalf("byte %d of the buffer is %#x", i, c)
		}
	}
	array[0] = 9
	if b[0] != 9 || b[7] != 7 {
		t.Errorf("the block is % x, and not in the array", b)
	}
	a.Close()
}

// grow grows the stack by about 100 bytes per depth.
func grow(depth int) (sum int) {
	var frame [100]byte
	if depth > 0 {
		frame[depth%100] = byte(depth)
		sum = grow(depth-1) + int(frame[depth%99])
	}
	return sum
}

// TestRemaining: Remaining is the largest block that needs no call of the parent.
func TestRemaining(t *testing.T) {
	parent := &recorder{Allocator: alloctest.New(t)}
	a := New(parent, &Options{ChunkBytes: 1000, MaxChunkBytes: 4000})
	defer a.Close()
	if a.Remaining() != 0 {
		t.Errorf("%d bytes of no chunk", a.Remaining())
	}
	for _, size := range []int{100, 950, 1900} { // one chunk each
		freehold.Must(a.Alloc(size, 1))
	}
	for range 2 { // with and without spare chunks
		calls := len(parent.sizes)
		freehold.Must(a.Alloc(a.Remaining(), 1))
		if len(parent.sizes) != calls {
			t.Error("a block of what remains took memory from the parent")
		}
		if n := a.Remaining(); n != 0 {
			freehold.Must(a.Alloc(n, 1))
		}
		a.Reset()
	}
	if got, want := a.Remaining(), slices.Max(parent.sizes); got != want {
		t.Errorf("%d bytes remain of chunks %v", got, parent.sizes)
	}
}
