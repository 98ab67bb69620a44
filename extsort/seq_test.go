package extsort_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/extsort"
)

// Records of a sequence may have any bytes, and share memory.
func TestSortedSeq(t *testing.T) {
	try := some(1, 3)
	for n, in := range inputs(300 << 10) {
		if !try() {
			continue
		}
		v := variants[n%4]
		o := v.o
		o.MemoryBytes, o.Parallel, o.Parent = 2*extsort.MinMemoryBytes, 2, alloctest.New(t)
		records := bytes.Split([]byte(in.text), []byte("a"))
		if slices.ContainsFunc(records, func(r []byte) bool { return len(r) > 10_000 }) {
			continue
		}
		memory := make([]byte, 10_000)
		seq := func(yield func([]byte) bool) {
			for _, r := range records {
				if !yield(memory[:copy(memory, r)]) {
					return
				}
			}
		}
		want := sortedBy(records, &o)
		i := 0
		for r, err := range extsort.SortedSeq(context.Background(), &o, seq) {
			must(t, err)
			if i >= len(want) || !bytes.Equal(r, want[i]) {
				t.Fatalf("%s, %s: record %d of %d is %.40q", in.name, v.name, i, len(want), r)
			}
			i++
		}
		if i != len(want) {
			t.Errorf("%s, %s: %d records, want %d", in.name, v.name, i, len(want))
		}
	}
}

// A sequence that does not end stops with the context, and its panic passes.
func TestSortedSeqStops(t *testing.T) {
	cause := errors.New("the user's reason")
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	left, stopped := 100_000, false
	endless := func(yield func([]byte) bool) {
		defer func() { stopped = true }()
		for yield([]byte("record")) {
			if left--; left == 0 {
				cancel(cause)
			}
		}
	}
	for r, err := range extsort.SortedSeq(ctx, smallest(t), endless) {
		if !errors.Is(err, cause) || r != nil {
			t.Errorf("%q, %v, want the context's cause", r, err)
		}
	}
	if left != 0 || !stopped {
		t.Errorf("%d records left, ended: %v", left, stopped)
	}
	defer func() {
		if p := recover(); p != "mine" {
			t.Errorf("panicked with %v", p)
		}
	}()
	o := smallest(t)
	o.MemoryBytes, o.Parallel = 2*extsort.MinMemoryBytes, 2
	for range extsort.SortedSeq(context.Background(), o, func(func([]byte) bool) { panic("mine") }) {
		t.Error("a record of a sequence without any")
	}
}
