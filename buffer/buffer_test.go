// Buffers in memory: growth, limits, slices.

package buffer_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/internal/panics"
)

func newBuffer(t testing.TB, o *buffer.Options) *buffer.Buffer {
	t.Helper()
	b := buffer.New(alloctest.New(t), o)
	t.Cleanup(func() { must(t, b.Close()) })
	return b
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantData checks what b holds, by each way to read it.
func wantData(t testing.TB, b *buffer.Buffer, want []byte) {
	t.Helper()
	if !bytes.Equal(b.Bytes(), want) || b.Len() != len(want) || cap(b.Bytes()) != b.Len() || b.Cap() < b.Len() {
		t.Fatalf("%d bytes of capacity %d, want %d bytes: %.40q, want %.40q", b.Len(), b.Cap(), len(want), b.Bytes(), want)
	}
	var w bytes.Buffer
	if n, err := b.WriteTo(&w); err != nil || n != int64(len(want)) || !bytes.Equal(w.Bytes(), want) {
		t.Fatalf("WriteTo: %d bytes, %v", n, err)
	}
}

func TestBufferTakesNoMemoryBeforeTheFirstByte(t *testing.T) {
	a := freehold.NewTagged(alloctest.New(t), "")
	b := buffer.New(a, nil)
	if s, err := b.Extend(0); err != nil || len(s) != 0 {
		t.Errorf("Extend(0): %v, %v", s, err)
	}
	b.Clear()
	b.Trim()
	wantData(t, b, nil)
	if n := a.Counts().Allocs; n != 0 {
		t.Errorf("%d blocks", n)
	}
	must(t, b.Close())
}

func TestExtendedSlicesEndWhereTheDataEnds(t *testing.T) {
	b := newBuffer(t, nil)
	for i := range 1000 {
		s := must1(b.Extend(i % 7))
		if len(s) != i%7 || cap(s) != len(s) {
			t.Fatalf("Extend(%d) returned %d bytes of capacity %d", i%7, len(s), cap(s))
		}
		for j := range s {
			s[j] = byte(i)
		}
	}
	var want []byte
	for i := range 1000 {
		want = append(want, bytes.Repeat([]byte{byte(i)}, i%7)...)
	}
	wantData(t, b, want)
}

func TestCapacityDoublesUpToTheLimit(t *testing.T) {
	b := newBuffer(t, &buffer.Options{MaxBytes: 1000})
	sizes := []int{}
	for range 1000 {
		must(t, b.WriteByte(1))
		if n := len(sizes); n == 0 || sizes[n-1] != b.Cap() {
			sizes = append(sizes, b.Cap())
		}
	}
	if got, want := sizes, []int{64, 128, 256, 512, 1000}; !slices.Equal(got, want) {
		t.Errorf("capacities %v, want %v", got, want)
	}
	err := b.WriteByte(1)
	if !errors.Is(err, freehold.ErrOutOfMemory) || b.Len() != 1000 {
		t.Errorf("a byte beyond MaxBytes: %v, %d bytes", err, b.Len())
	}
	if _, err := b.Extend(int(^uint(0) >> 1)); !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Errorf("as many bytes as there can be: %v", err)
	}
}

// MaxBytes may be filled at once, and in pieces.
func TestMaxBytesMayBeFilled(t *testing.T) {
	for _, sizes := range [][]int{{1000}, {999, 1}, {1, 999}, {500, 500}} {
		b := newBuffer(t, &buffer.Options{MaxBytes: 1000})
		for _, n := range sizes {
			if _, err := b.Extend(n); err != nil {
				t.Errorf("%v: %v", sizes, err)
			}
		}
		if _, err := b.Extend(1); !errors.Is(err, freehold.ErrOutOfMemory) || b.Len() != 1000 {
			t.Errorf("%v: a byte more: %v, and the buffer has %d", sizes, err, b.Len())
		}
	}
}

// With no memory for the double a buffer grows by less.
func TestGrowthWhereTheDoubleDoesNotFit(t *testing.T) {
	limit := freehold.NewLimit(freehold.Default(), 1<<20)
	b := buffer.New(limit, nil)
	defer b.Close()
	const whole = 1 << 20
	n := 0
	for ; n < whole; n += 64 {
		if _, err := b.Extend(64); err != nil {
			break
		}
	}
	if n < whole*3/4 {
		t.Errorf("%d of %d bytes fit", n, whole)
	}
}

func TestGrowMakesRoomOnce(t *testing.T) {
	b := newBuffer(t, nil)
	must(t, b.Grow(1000))
	capacity := b.Cap()
	if capacity < 1000 || b.Len() != 0 {
		t.Fatalf("%d bytes of capacity %d", b.Len(), capacity)
	}
	for range 1000 {
		must(t, b.WriteByte(7))
	}
	if b.Cap() != capacity {
		t.Errorf("capacity %d, was %d", b.Cap(), capacity)
	}
}

func TestTrimKeepsTheDataAlone(t *testing.T) {
	b := newBuffer(t, nil)
	must(t, b.Grow(100_000))
	b.WriteString("hello")
	b.Trim()
	if b.Cap() != 5 {
		t.Errorf("capacity %d", b.Cap())
	}
	wantData(t, b, []byte("hello"))
	b.Clear()
	b.Trim()
	if b.Cap() != 0 {
		t.Errorf("capacity %d without data", b.Cap())
	}
	b.WriteString("again")
	wantData(t, b, []byte("again"))
}

func TestEveryRefusalLeavesTheBufferAsItWas(t *testing.T) {
	for n := 1; n < 20; n++ {
		a := alloctest.New(t)
		b := buffer.New(alloctest.FailAfter(a, n), &buffer.Options{})
		var want []byte
		for i := range 3000 {
			if err := b.WriteByte(byte(i)); err == nil {
				want = append(want, byte(i))
			} else if !errors.Is(err, freehold.ErrOutOfMemory) {
				t.Fatal(err)
			}
		}
		wantData(t, b, want)
		must(t, b.Close())
	}
}

func TestMisuseOfABufferPanics(t *testing.T) {
	closed := buffer.New(alloctest.New(t), nil)
	closed.WriteByte(1)
	must(t, closed.Close())
	must(t, closed.Close())
	if closed.Len() != 0 || closed.Cap() != 0 {
		t.Errorf("after Close %d bytes, capacity %d", closed.Len(), closed.Cap())
	}
	if closed.Bytes() != nil || closed.InFile() {
		t.Errorf("after Close %d bytes, in a file: %t", len(closed.Bytes()), closed.InFile())
	}
	open := newBuffer(t, nil)
	open.WriteString("data")
	var zero buffer.Buffer
	for _, tt := range []struct {
		want string
		call func()
	}{
		{"freehold: buffer.New: parent is nil", func() { buffer.New(nil, nil) }},
		{"freehold: buffer.Over: parent is nil", func() { buffer.Over(nil, nil) }},
		{"freehold: buffer.New: MaxBytes -1, want 0 or more", func() { buffer.New(freehold.Default(), &buffer.Options{MaxBytes: -1}) }},
		{"freehold: buffer.New: SpillAfter -1, want 0 or more", func() { buffer.New(freehold.Default(), &buffer.Options{SpillAfter: -1}) }},
		{"freehold: buffer.Buffer.Extend: size -1, want 0 or more", func() { open.Extend(-1) }},
		{"freehold: buffer.Buffer.Grow: size -1, want 0 or more", func() { open.Grow(-1) }},
		{"freehold: buffer.Buffer.Truncate: length 5, want 0 to 4", func() { open.Truncate(5) }},
		{"freehold: buffer.Buffer.Truncate: length -1, want 0 to 4", func() { open.Truncate(-1) }},
		{"freehold: buffer.Buffer.Write: the buffer is closed", func() { closed.Write([]byte("x")) }},
		{"freehold: buffer.Buffer.Extend: the buffer is closed", func() { closed.Extend(0) }},
		{"freehold: buffer.Buffer.Write: the buffer is closed", func() { closed.Write(nil) }},
		{"freehold: buffer.Buffer.WriteString: the buffer is closed", func() { closed.WriteString("") }},
		{"freehold: buffer.Buffer.WriteByte: the buffer is closed", func() { closed.WriteByte(1) }},
		{"freehold: buffer.Buffer.Grow: the buffer is closed", func() { closed.Grow(0) }},
		{"freehold: buffer.Buffer.Truncate: the buffer is closed", func() { closed.Truncate(0) }},
		{"freehold: buffer.Buffer.Clear: the buffer is closed", func() { closed.Clear() }},
		{"freehold: buffer.Buffer.Trim: the buffer is closed", func() { closed.Trim() }},
		{"freehold: buffer.Buffer.Sync: the buffer is closed", func() { closed.Sync() }},
		{"freehold: buffer.Buffer.Commit: the buffer is closed", func() { closed.Commit() }},
		{"freehold: buffer.Buffer.Guard: the buffer is closed", func() { closed.Guard(func() {}) }},
		{"freehold: buffer.Buffer.ReadAt: the buffer is closed", func() { closed.ReadAt(nil, 0) }},
		{"freehold: buffer.Buffer.WriteTo: the buffer is closed", func() { closed.WriteTo(nil) }},
		{"freehold: buffer.Buffer.ReadFrom: the buffer is closed", func() { closed.ReadFrom(nil) }},
		{"freehold: buffer.Buffer.Guard: f is nil", func() { open.Guard(nil) }},
		{"freehold: buffer.Buffer.WriteTo: w is nil", func() { open.WriteTo(nil) }},
		{"freehold: buffer.Reader.WriteTo: w is nil", func() { open.NewReader().WriteTo(nil) }},
		{"freehold: buffer.Buffer.ReadFrom: r is nil", func() { open.ReadFrom(nil) }},
		{"freehold: buffer.Buffer.NewReader: the buffer is closed", func() { closed.NewReader() }},
		{"freehold: buffer.Buffer.Extend: zero value: buffer.New makes a Buffer", func() { zero.Extend(1) }},
		{"", func() { zero.Close() }},
	} {
		panics.Want(t, tt.want, tt.call)
	}
	wantData(t, open, []byte("data"))
}

func TestTextOfABuffer(t *testing.T) {
	b := buffer.New(alloctest.New(t), nil)
	if _, err := b.Write([]byte("three")); err != nil {
		t.Fatal(err)
	}
	open := fmt.Sprintf("buffer.Buffer: 5 of %d bytes in memory", b.Cap())
	text := b.String()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if text != open || b.String() != "buffer.Buffer: closed" || (*buffer.Buffer)(nil).String() != "<nil>" {
		t.Errorf("%s, %s when closed", text, b)
	}
}
