package extsort_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/extsort"
)

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

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

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
					for wait := 0; runtime.NumGoroutine() > before; wait++ {
						if wait == 1000 {
							t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
						}
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
