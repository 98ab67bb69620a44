// Over: a buffer over the caller's slice.

package buffer_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/buffer"
)

// Records of a slice are sorted in it, and only scratch is taken.
func TestRecordsOfASliceAreSorted(t *testing.T) {
	from := newBuffer(t, nil)
	var want [][]byte
	r := must1(buffer.NewRecords(from, &buffer.RecordsOptions{LongLengths: true}))
	for i := range 1000 {
		must(t, r.AppendBytes(number(uint64(i*7919%1000))))
		want = append(want, number(uint64(i)))
	}
	data := bytes.Clone(from.Bytes())
	b := buffer.Over(alloctest.New(t), data)
	over := must1(buffer.NewRecords(b, &buffer.RecordsOptions{LongLengths: true}))
	must(t, over.SortBy(context.Background(), nil, nil))
	wantRecords(t, over, want)
	if addrOf(b.Bytes()) != addrOf(data) || b.Cap() != len(data) {
		t.Errorf("the data has moved, or has a capacity of %d", b.Cap())
	}
	must(t, b.Close())
}

// The slice's capacity is not touched. What is appended moves the data away, and Close frees it.
func TestGrowthLeavesTheSlice(t *testing.T) {
	a := freehold.NewLimit(alloctest.New(t), 100_000)
	data := []byte("hello, world")[:5]
	b := buffer.Over(a, data)
	b.Bytes()[0] = 'H'
	b.Trim()
	b.Clear()
	b.Trim()
	must1(b.WriteString("12345"))
	if string(data) != "12345" || a.Used() != 0 {
		t.Fatalf("%q, %d bytes taken", data, a.Used())
	}
	if _, err := b.Extend(200_000); !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Error(err)
	}
	must1(b.WriteString(", world"))
	b.Bytes()[0] = '9'
	wantData(t, b, []byte("92345, world"))
	if string(data[:12]) != "12345, world" {
		t.Errorf("the slice is %q", data[:12])
	}
	b.Trim()
	must(t, b.Close())
	if a.Used() != 0 {
		t.Errorf("%d bytes are live", a.Used())
	}
	wantData(t, buffer.Over(a, nil), nil)
}
