package extsort_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/extsort"
)

// A call that has many records of one Read looks at the context between them.
func TestCancellationBetweenReads(t *testing.T) {
	const at, lines = 5000, 100_000
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			made := 0
			o := &extsort.Options{MemoryBytes: 16 << 20, Parallel: 1, Key: func(_, r []byte) []byte {
				if made++; made == at {
					cancel()
				}
				return r
			}}
			if err := call(ctx, o, strings.NewReader(strings.Repeat("a\n", lines))); !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want context.Canceled", err)
			}
			if made > at+1024 {
				t.Errorf("%d keys were made after the context had ended", made-at)
			}
		})
	}
}

// The last block is written when all records have been passed on.
func TestLastWriteFails(t *testing.T) {
	for _, text := range []string{"b\na\n", large()} {
		room := brokenAfter(len(text) - 1)
		if err := extsort.Sort(context.Background(), &room, smallest(t), strings.NewReader(text)); !errors.Is(err, errBroken) {
			t.Errorf("Sort of %d bytes: %v, want that of the destination", len(text), err)
		}
	}
}
