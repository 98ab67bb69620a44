package extsort_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/extsort"
)

// Whatever a sort does when its context ends, the error is context.Cause.
func TestCauseOfCancellation(t *testing.T) {
	cause := errors.New("the user's reason")
	text := large()
	for len(text) < 8<<20 {
		text += text
	}
	rounds := 10
	if testing.Short() {
		rounds = 1
	}
	for _, phase := range []extsort.Phase{extsort.PhaseReading, extsort.PhaseMerging, extsort.PhaseWriting} {
		if phase == extsort.PhaseWriting {
			text = large()
		}
		for _, parallel := range []int{1, 2} {
			// Often enough for workers to be in different places.
			for calls := range rounds {
				ctx, cancel := context.WithCancelCause(context.Background())
				o := smallest(t)
				o.Parallel, o.MemoryBytes = parallel, parallel*extsort.MinMemoryBytes
				o.Progress = func(p extsort.Progress) {
					if p.Phase == phase {
						if calls--; calls < 0 {
							cancel(cause)
						}
					}
				}
				err := extsort.Sort(ctx, io.Discard, o, strings.NewReader(text))
				cancel(nil)
				if !errors.Is(err, cause) {
					t.Errorf("%v, %d goroutines: %v, want the context's cause", phase, parallel, err)
				}
			}
		}
	}
}

// An iterator's error is the last thing that it yields, and the only one.
func TestSortedYieldsOneError(t *testing.T) {
	cause := errors.New("the user's reason")
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	yielded, failed := 0, 0
	for r, err := range extsort.Sorted(ctx, nil, strings.NewReader("a\nb\nc\n")) {
		if yielded++; yielded == 2 {
			cancel(cause)
		}
		if err == nil {
			continue
		}
		if failed++; !errors.Is(err, cause) || r != nil || failed > 1 || yielded != 3 {
			t.Errorf("record %d is %q, %v", yielded, r, err)
		}
	}
	if failed != 1 {
		t.Errorf("%d errors, want one", failed)
	}
}
