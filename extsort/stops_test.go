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
			cause := errors.New("the user's reason")
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			made := 0
			o := &extsort.Options{MemoryBytes: 16 << 20, Parallel: 1, Key: func(_, r []byte) []byte {
				if made++; made == at {
					cancel(cause)
				}
				return r
			}}
			if err := call(ctx, o, strings.NewReader(strings.Repeat("a\n", lines))); !errors.Is(err, cause) {
				t.Errorf("%v, want the context's cause", err)
			}
			if made > at+1024 {
				t.Errorf("%d keys were made after the context had ended", made-at)
			}
		})
	}
}

// A destination may fail at once, meanwhile, or with the last block, which is written when
// all records have been passed on.
func TestDestinationsThatFail(t *testing.T) {
	for _, text := range []string{"b\na\n", large()} {
		for _, room := range []int{0, len(text) / 2, len(text) - 1} {
			for _, parallel := range []int{1, 2} {
				o := smallest(t)
				o.Parallel, o.MemoryBytes = parallel, parallel*extsort.MinMemoryBytes
				dst := brokenAfter(room)
				if err := extsort.Sort(context.Background(), &dst, o, strings.NewReader(text)); !errors.Is(err, errBroken) {
					t.Errorf("%d bytes of %d, %d goroutines: %v, want that of the destination", room, len(text), parallel, err)
				}
			}
		}
	}
}

// A destination that has failed is not written again, and what it would have had is not
// merged.
func TestDestinationThatHasFailed(t *testing.T) {
	text := large()
	for key, o := range withKeys() {
		o.MemoryBytes, o.Parallel, o.TempDirs = extsort.MinMemoryBytes, 1, []string{t.TempDir()}
		var merged int64
		o.Progress = func(p extsort.Progress) {
			if p.Phase == extsort.PhaseWriting {
				merged = p.Done
			}
		}
		writes := 0
		dst := writerFunc(func(b []byte) (int, error) {
			if writes++; writes == 1 {
				return 0, errBroken
			}
			return len(b), nil
		})
		if err := extsort.Sort(context.Background(), dst, o, strings.NewReader(text)); !errors.Is(err, errBroken) || writes != 1 {
			t.Errorf("%s: %v after %d writes, want that of the first", key, err, writes)
		}
		if merged > 2*extsort.MinMemoryBytes {
			t.Errorf("%s: %d bytes were merged, with memory of %d", key, merged, o.MemoryBytes)
		}
	}
}
