// A sort that ends early: the end of its context, and panics and Goexit of the user's functions.

package extsort_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
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

// A Read that returns after the end of the context is the last one.
func TestCancellationWhileReading(t *testing.T) {
	cause := errors.New("the user's reason")
	onEachCall(t, func(t *testing.T, o *extsort.Options, call func(context.Context, *extsort.Options, ...io.Reader) error) {
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		reads := 0
		drip := readerFunc(func(b []byte) (int, error) {
			if reads++; reads == 3 {
				cancel(cause)
			}
			b[0] = 'a'
			return 1, nil
		})
		if err := call(ctx, o, drip); !errors.Is(err, cause) || reads != 3 {
			t.Errorf("%v after %d Reads, want the context's cause after 3", err, reads)
		}
	})
}

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

// userFunctions are where the user's code runs. Each calls do in the middle of its
// work.
var userFunctions = []struct {
	name string
	set  func(o *extsort.Options, dst *io.Writer, src *io.Reader, do func())
}{
	{"Key", func(o *extsort.Options, _ *io.Writer, _ *io.Reader, do func()) {
		calls := 0
		o.Key = func(dst, r []byte) []byte {
			if calls++; calls == 20_000 {
				do()
			}
			return append(dst, r...)
		}
	}},
	{"Progress while reading", func(o *extsort.Options, _ *io.Writer, _ *io.Reader, do func()) {
		o.Progress = func(p extsort.Progress) {
			if p.Phase == extsort.PhaseReading && p.Done > 250_000 {
				do()
			}
		}
	}},
	{"Progress before writing", func(o *extsort.Options, _ *io.Writer, _ *io.Reader, do func()) {
		o.Progress = func(p extsort.Progress) {
			if p.Phase == extsort.PhaseWriting {
				do()
			}
		}
	}},
	{"Read", func(_ *extsort.Options, _ *io.Writer, src *io.Reader, do func()) {
		*src = io.MultiReader(*src, readerFunc(func([]byte) (int, error) { do(); return 0, io.EOF }))
	}},
	{"Write", func(_ *extsort.Options, dst *io.Writer, _ *io.Reader, do func()) {
		*dst = writerFunc(func(b []byte) (int, error) { do(); return len(b), nil })
	}},
}

// onEach calls f for each of the user's functions, on one goroutine and on two, with
// input that memory holds and that it does not. Every goroutine must end.
func onEach(t *testing.T, f func(t *testing.T, name string, sort func(do func()) error)) {
	for _, u := range userFunctions {
		for _, parallel := range []int{1, 2} {
			for _, memory := range []int{extsort.MinMemoryBytes * parallel, 8 << 20} {
				t.Run(u.name, func(t *testing.T) {
					before := runtime.NumGoroutine()
					f(t, u.name, func(do func()) error {
						o := smallest(t)
						o.MemoryBytes, o.Parallel, o.Parent = memory, parallel, alloctest.New(t)
						dst, src := io.Discard, io.Reader(strings.NewReader(large()))
						u.set(o, &dst, &src, do)
						return extsort.Sort(context.Background(), dst, o, src)
					})
					for runtime.NumGoroutine() > before { // forever, if one stays
						time.Sleep(time.Millisecond)
					}
				})
			}
		}
	}
}

// A panic of the user's functions passes to the caller of Sort.
func TestPanicsPass(t *testing.T) {
	onEach(t, func(t *testing.T, name string, sort func(do func()) error) {
		mine := errors.New("mine")
		defer func() {
			if p := recover(); p != mine {
				t.Errorf("%s panicked, and Sort with %v", name, p)
			}
		}()
		t.Errorf("%s panicked, and Sort returned %v", name, sort(func() { panic(mine) }))
	})
}

// So does runtime.Goexit, which t.FailNow calls.
func TestGoexitPasses(t *testing.T) {
	onEach(t, func(t *testing.T, name string, sort func(do func()) error) {
		ended := make(chan bool)
		go func() {
			returned := false
			defer func() { ended <- returned }()
			_ = sort(runtime.Goexit)
			returned = true
		}()
		if <-ended {
			t.Errorf("%s ended its goroutine, and Sort returned", name)
		}
	})
}
