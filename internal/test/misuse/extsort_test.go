package misuse

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/freehold-go/freehold/extsort"
)

// sorts runs a program that sorts lines.
func sorts(o *extsort.Options, text string) func(w *world) {
	return func(w *world) {
		w.err = extsort.Sort(context.Background(), io.Discard, o, strings.NewReader(text))
	}
}

var extsortPrograms = []program{
	{"a sort without a destination", always(panics("dst is nil")),
		func(w *world) { extsort.Sort(context.Background(), nil, nil) }, sorts(nil, "b\na\n")},
	{"a sort of a nil source", always(panics("source 0 is nil")),
		func(w *world) { extsort.Sort(context.Background(), io.Discard, nil, nil) }, sorts(nil, "")},
	{"a sort with negative memory", always(panics("MemoryBytes -1")),
		sorts(&extsort.Options{MemoryBytes: -1}, ""), sorts(&extsort.Options{}, "")},
	{"a sort with less memory than the least", always(panics("MemoryBytes 1000, want 0 or at least")),
		sorts(&extsort.Options{MemoryBytes: 1000}, ""), sorts(&extsort.Options{MemoryBytes: extsort.MinMemoryBytes}, "")},
	{"a sort by negative parallelism", always(panics("Parallel -1")),
		sorts(&extsort.Options{Parallel: -1}, ""), sorts(&extsort.Options{Parallel: 1}, "")},
	{"records of 0 bytes", always(panics("extsort.Fixed: size 0")),
		func(w *world) { extsort.Fixed(0) }, sorts(&extsort.Options{Format: extsort.Fixed(2)}, "b\na\n")},
	{"a record that ends in its middle", always(fails("")),
		sorts(&extsort.Options{Format: extsort.Fixed(3)}, "abcd"), sorts(&extsort.Options{Format: extsort.Fixed(3)}, "abcdef")},
	{"Check of unsorted lines", always(fails("")),
		func(w *world) { w.err = extsort.Check(context.Background(), nil, strings.NewReader("b\na\n")) },
		func(w *world) { w.err = extsort.Check(context.Background(), nil, strings.NewReader("a\nb\n")) }},
	{"SortedSeq of nil", always(panics("seq is nil")),
		func(w *world) {
			for range extsort.SortedSeq(context.Background(), nil, nil) {
			}
		},
		func(w *world) {
			for _, err := range extsort.SortedSeq(context.Background(), nil, slices.Values([][]byte{{1}})) {
				w.err = errors.Join(w.err, err)
			}
		}},
}
