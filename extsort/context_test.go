package extsort_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/extsort"
	"github.com/freehold-go/freehold/internal/file/atomicfile"
)

// A sort that is cancelled in any phase says why, and leaves no file.
func TestCancellation(t *testing.T) {
	cause := errors.New("the user's reason")
	rounds := 10
	if testing.Short() {
		rounds = 1
	}
	for phase, times := range map[extsort.Phase]int{extsort.PhaseReading: 1, extsort.PhaseMerging: 4, extsort.PhaseWriting: 1} {
		text := strings.Repeat(large(), times)
		for _, parallel := range []int{1, 2} {
			// Often enough for workers to be in different places.
			for round := range rounds {
				ctx, cancel := context.WithCancelCause(context.Background())
				o := smallest(t)
				o.Parallel, o.MemoryBytes = parallel, parallel*extsort.MinMemoryBytes
				reports := 0
				o.Progress = func(p extsort.Progress) {
					if p.Phase == phase {
						if reports++; reports > round {
							cancel(cause)
						}
					}
				}
				dst := filepath.Join(t.TempDir(), "out")
				f := freehold.Must(atomicfile.Create(dst))
				err := extsort.Sort(ctx, f, o, strings.NewReader(text))
				f.Close()
				cancel(nil)
				if reports <= round || !errors.Is(err, cause) {
					t.Errorf("%v, %d goroutines: %v after %d reports, want the context's cause", phase, parallel, err, reports)
				}
				noFiles(t, filepath.Dir(dst))
				noFiles(t, o.TempDirs[0])
			}
		}
	}
}

// A merge that is cancelled in any phase says why: an output that lacks records is never
// without an error.
func TestCancellationOfMerges(t *testing.T) {
	cause := errors.New("the user's reason")
	for _, tt := range []struct {
		sources int
		phases  []extsort.Phase
	}{
		{3, []extsort.Phase{extsort.PhaseWriting}},
		{300, []extsort.Phase{extsort.PhaseReading, extsort.PhaseMerging, extsort.PhaseWriting}},
	} {
		for _, phase := range tt.phases {
			ctx, cancel := context.WithCancelCause(context.Background())
			var sources []io.Reader
			for range tt.sources {
				sources = append(sources, strings.NewReader(strings.Repeat("of many equal lines\n", 5_000_000/20/tt.sources)))
			}
			o, began := smallest(t), false
			o.Progress = func(p extsort.Progress) {
				if p.Phase == phase {
					began = true
					cancel(cause)
				}
			}
			if err := extsort.Merge(ctx, io.Discard, o, sources...); !began || !errors.Is(err, cause) {
				t.Errorf("%d sources, %v: %v, began %t", tt.sources, phase, err, began)
			}
			cancel(nil)
			noFiles(t, o.TempDirs[0])
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
