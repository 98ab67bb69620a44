package main

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/internal/asan"
)

func newArena(t testing.TB) *arena.Arena {
	a := arena.New(alloctest.New(t), nil)
	t.Cleanup(a.Close)
	return a
}

// walk reads all of a message and writes it again.
func walk(b *Builder, d *Decoder) error {
	for d.Next() {
		if d.Type()&Nested == 0 {
			b.Bytes(d.Type(), d.Bytes())
			continue
		}
		b.Begin(d.Type())
		in := d.Inside()
		if err := walk(b, &in); err != nil {
			return err
		}
		b.End()
	}
	return d.Err()
}

func TestDecoder(t *testing.T) {
	deep := ""
	for range maxDepth + 1 {
		deep = "\x80\x00\x00\x00" + string([]byte{byte(len(deep))}) + deep
	}
	for _, test := range []struct{ message, want string }{
		{"", ""},
		{"\x01\x00\x00\x00\x00", ""},
		{"\x01\x00\x00\x00\x02ab\x80\x00\x00\x00\x05\x02\x00\x00\x00\x00", ""},
		{deep[headerBytes:], ""},
		{"\x01", "offset 0: a header of 5 bytes is cut off after 1"},
		{"\x01\x00\x00\x00\x01a\x01\x00", "offset 6: a header of 5 bytes is cut off after 2"},
		{"\x01\x00\x00\x00\x01", "offset 0: a value of 1 bytes, and 0 are left"},
		{"\x01\xff\xff\xff\xffabc", "offset 0: a value of 4294967295 bytes, and 3 are left"},
		{"\x80\x00\x00\x00\x05\x01\x00\x00\x00\x01a", "offset 5: a value of 1 bytes, and 0 are left"}, // longer than what it is in
		{"\x01\x00\x00\x00\x01a\x80\x00\x00\x00\x03abc", "offset 11: a header of 5 bytes is cut off after 3"},
		{deep, "offset 165: more than 32 messages in each other"},
	} {
		b := NewBuilder(newArena(t))
		err := walk(b, NewDecoder([]byte(test.message)))
		if got := fmt.Sprint(err); got != test.want && (err != nil || test.want != "") {
			t.Errorf("%q: error %v, want %q", test.message, err, test.want)
		}
		var format *FormatError
		if err != nil && !errors.As(err, &format) {
			t.Errorf("%q: the error is a %T", test.message, err)
		}
	}
}

func TestDecoderUint64(t *testing.T) {
	d := NewDecoder([]byte("\x01\x00\x00\x00\x02ab"))
	if !d.Next() || d.Uint64() != 0 || fmt.Sprint(d.Err()) != "offset 5: a number of 2 bytes, not 8" {
		t.Errorf("error %v", d.Err())
	}
	in := d.Inside()
	if in.Next() || fmt.Sprint(in.Err()) != "offset 5: type 0x1 has no message inside" {
		t.Errorf("error %v", in.Err())
	}
}

func TestBuilderDepth(t *testing.T) {
	b := NewBuilder(newArena(t))
	for range maxDepth + 1 {
		b.Begin(Nested)
	}
	for range maxDepth + 1 {
		b.End()
	}
	if _, err := b.Message(); err == nil {
		t.Error("no error")
	}
}

// FuzzDecoder decodes arbitrary bytes. The result is an error with an offset, or
// encodes to the same message again.
func FuzzDecoder(f *testing.F) {
	lines := []line{{1, 2}, {1 << 60, 3}}
	order, err := encodeOrder(goHeap{}, 7, lines)
	if err != nil {
		f.Fatal(err)
	}
	receipt, err := answer(goHeap{}, order)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(order)
	f.Add(receipt)
	f.Add(order[:len(order)-3])
	f.Add([]byte("\x80\x00\x00\x00\x05\x80\xff\xff\xff\xff"))
	a := newArena(f)
	f.Fuzz(func(t *testing.T, message []byte) {
		defer a.Reset()
		b := NewBuilder(a)
		if err := walk(b, NewDecoder(message)); err != nil {
			var format *FormatError
			if !errors.As(err, &format) || format.Offset < 0 || format.Offset > len(message) {
				t.Errorf("%x: error %q", message, err)
			}
		} else if again, err := b.Message(); err != nil || !slices.Equal(again, message) {
			t.Errorf("%x became %x, error %v", message, again, err)
		}
		if r, err := answer(a, message); err == nil {
			id, lines, err := decodeOrder(a, message)
			if err != nil {
				t.Fatal(err)
			}
			if err := checkReceipt(r, id, lines); err != nil {
				t.Errorf("%x: %v", message, err)
			}
		}
		_ = checkReceipt(message, 7, lines)
	})
}

func TestOrderErrors(t *testing.T) {
	for _, test := range []struct{ message, want string }{
		{"", "offset 0: no order"},
		{"\x01\x00\x00\x00\x00", "offset 0: no order"},
		{"\x81\x00\x00\x00\x06\x01\x00\x00\x00\x01a", "offset 10: a number of 1 bytes, not 8"},
		{"\x81\x00\x00\x00\x00\x81\x00\x00\x00\x00", "offset 0: more than an order"},
		{"\x81\x00\x00\x00\x00\x81", "offset 5: a header of 5 bytes is cut off after 1"},
		{"\x81\x00\x00\x00\x06\x83\x00\x00\x00\x01a", "offset 10: a header of 5 bytes is cut off after 1"},
	} {
		if _, _, err := decodeOrder(newArena(t), []byte(test.message)); fmt.Sprint(err) != test.want {
			t.Errorf("%q: error %v, want %q", test.message, err, test.want)
		}
	}
}

// checkReceipt detects any difference from the correct receipt.
func TestCheckReceipt(t *testing.T) {
	lines := []line{{12, 3}, {5, 1}}
	order := freehold.Must(encodeOrder(goHeap{}, 9, lines))
	receipt := freehold.Must(answer(goHeap{}, order))
	if err := checkReceipt(receipt, 9, lines); err != nil {
		t.Fatal(err)
	}
	for i := range receipt {
		wrong := slices.Clone(receipt)
		wrong[i]++
		if checkReceipt(wrong, 9, lines) == nil {
			t.Errorf("a wrong byte at %d passed", i)
		}
		if checkReceipt(receipt[:i], 9, lines) == nil {
			t.Errorf("a receipt cut at %d passed", i)
		}
	}
}

func TestOutOfMemory(t *testing.T) {
	order := freehold.Must(encodeOrder(goHeap{}, 1, make([]line, 100)))
	for n := 0; ; n++ {
		a := arena.New(alloctest.FailAfter(alloctest.New(t), n), &arena.Options{ChunkBytes: 128, MaxChunkBytes: 128})
		_, err := answer(a, order)
		a.Close()
		if err == nil {
			if n < 5 {
				t.Errorf("only %d allocations", n)
			}
			break
		}
		if !errors.Is(err, freehold.ErrOutOfMemory) {
			t.Fatalf("failure %d: %v", n, err)
		}
	}
}

// The cost of a request without HTTP.
func BenchmarkAnswer(b *testing.B) {
	order := freehold.Must(encodeOrder(goHeap{}, 1, make([]line, 100)))
	b.Run("memory=go", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := answer(goHeap{}, order); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
	b.Run("memory=shared", func(b *testing.B) {
		heap := freehold.NewHeap(nil)
		defer heap.Close()
		shared := arena.NewShared(heap, nil)
		defer shared.Close()
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for n := 1; pb.Next(); n++ {
				g := shared.Enter()
				_, err := answer(shared, order)
				g.Leave()
				if err != nil {
					b.Fatal(err)
				}
				if n%resetEvery == 0 {
					shared.Reset()
				}
			}
		})
	})
}

func TestNoGoAllocations(t *testing.T) {
	if asan.Enabled {
		t.Skip("instrumented code allocates, and so do checked blocks")
	}
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	a := arena.New(heap, nil)
	defer a.Close()
	order := freehold.Must(encodeOrder(goHeap{}, 1, make([]line, 100)))
	if n := testing.AllocsPerRun(100, func() {
		if _, err := answer(a, order); err != nil {
			t.Fatal(err)
		}
		a.Reset()
	}); n != 0 {
		t.Errorf("an answer makes %v allocations on the Go heap", n)
	}
}
