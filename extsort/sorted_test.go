// Sources that are sorted: Merge and Check.

package extsort_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/extsort"
)

func TestMerge(t *testing.T) {
	o := &extsort.Options{Key: thirdByte}
	var sources []io.Reader
	var all [][]byte
	for i := range 17 {
		var lines [][]byte
		for j := range i * 10 {
			lines = append(lines, fmt.Appendf(nil, "%d%d%d source %d", j%3, j%7, j%5, i))
		}
		lines = sortedBy(lines, o)
		all = append(all, lines...)
		sources = append(sources, strings.NewReader(joinLines(lines)))
	}
	var out bytes.Buffer
	must(t, extsort.Merge(context.Background(), &out, o, sources...))
	same(t, out.String(), joinLines(sortedBy(all, o)))

	out.Reset()
	err := extsort.Merge(context.Background(), &out, nil, strings.NewReader("c\na\n"), strings.NewReader("b"))
	if err != nil || out.String() != "b\nc\na\n" {
		t.Errorf("sources that are not sorted gave %q, %v", out.String(), err)
	}
}

// An openReader counts readers that have begun and not ended.
type openReader struct {
	in    io.Reader
	open  *int
	most  *int
	begun bool
}

func (r *openReader) Read(b []byte) (int, error) {
	if !r.begun {
		r.begun = true
		*r.open++
		*r.most = max(*r.most, *r.open)
	}
	n, err := r.in.Read(b)
	if err == io.EOF {
		*r.open--
	}
	return n, err
}

// Any number of sources can be merged. Not all are read at a time, so they need not
// all be open, and each has memory for a longer record.
func TestMergeOfManySources(t *testing.T) {
	many := 2000
	if testing.Short() {
		many = 250
	}
	for _, memory := range []int{extsort.MinMemoryBytes, 32 << 20} {
		for i, v := range variants {
			if memory > extsort.MinMemoryBytes && i%5 != 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", v.name, memory), func(t *testing.T) {
				o := v.o
				o.MemoryBytes, o.Parallel, o.TempDirs, o.Parent = memory, 1, []string{t.TempDir()}, alloctest.New(t)
				open, most := 0, 0
				var sources []io.Reader
				var all [][]byte
				for i := range many {
					var lines [][]byte
					for j := range i % 4 {
						// Long, equal in parts, and of each source.
						lines = append(lines, fmt.Appendf(nil, "%d%d%d%s%d", j%3, i%7, j%2, strings.Repeat("x", i%5*250), i))
					}
					lines = sortedBy(lines, &o)
					all = append(all, lines...)
					sources = append(sources, &openReader{in: strings.NewReader(joinLines(lines)), open: &open, most: &most})
				}
				var out bytes.Buffer
				must(t, extsort.Merge(context.Background(), &out, &o, sources...))
				same(t, out.String(), joinLines(sortedBy(all, &o)))
				if open != 0 || most > 255 {
					t.Errorf("%d sources were open at a time, %d in the end", most, open)
				}
			})
		}
	}
}

// Sources that are not sorted lose no record.
func TestMergeOfUnsortedSources(t *testing.T) {
	text := large()
	for _, many := range []int{1, 3, 100, 700} {
		var sources []io.Reader
		var all []string
		for i := range many {
			lines := strings.SplitAfter(text[i*100:][:1000], "\n")
			lines[len(lines)-1] += "\n"
			all = append(all, lines...)
			sources = append(sources, strings.NewReader(strings.Join(lines, "")))
		}
		for name, o := range withKeys() {
			for _, s := range sources {
				s.(*strings.Reader).Seek(0, io.SeekStart)
			}
			o.MemoryBytes, o.Parallel = extsort.MinMemoryBytes, 2
			var out bytes.Buffer
			must(t, extsort.Merge(context.Background(), &out, o, sources...))
			got := strings.SplitAfter(strings.TrimSuffix(out.String(), "\n"), "\n")
			got[len(got)-1] += "\n"
			slices.Sort(got)
			slices.Sort(all)
			if !slices.Equal(got, all) {
				t.Errorf("%s: %d sources: %d records, want %d", name, many, len(got), len(all))
			}
		}
	}
}

// An error names the source, also in a group of later ones.
func TestMergeNamesTheSource(t *testing.T) {
	const many, wrong = 300, 250
	for name, o := range withKeys() {
		o.MemoryBytes, o.Parallel, o.TempDirs = extsort.MinMemoryBytes, 1, []string{t.TempDir()}
		var sources []io.Reader
		for i := range many {
			text := "a\n"
			if i == wrong {
				text += strings.Repeat("long", 100_000)
			}
			sources = append(sources, strings.NewReader(text))
		}
		err := extsort.Merge(context.Background(), io.Discard, o, sources...)
		var long *extsort.TooLongError
		if !errors.As(err, &long) || long.Source != wrong || long.Offset != 2 {
			t.Errorf("%s: %v, want byte 2 of source %d", name, err, wrong)
		}
	}
}

func TestCheck(t *testing.T) {
	tests := []struct {
		text string
		o    extsort.Options
		want int64
	}{
		{"", extsort.Options{}, 0},
		{"a\nb\nb", extsort.Options{}, 0},
		{"a\nb\nb", extsort.Options{Unique: true}, 3},
		{"a\nc\nb\na\n", extsort.Options{}, 3},
		{"a\nb\n", extsort.Options{Reverse: true}, 2},
		{"ccc\naac\naaa\n", extsort.Options{Key: thirdByte}, 3},
	}
	for _, tt := range tests {
		tt.o.MemoryBytes, tt.o.Parent = extsort.MinMemoryBytes, alloctest.New(t) // which overwrites what Check has freed
		err := extsort.Check(context.Background(), &tt.o, strings.NewReader(tt.text))
		var wrong *extsort.DisorderError
		if errors.As(err, &wrong) && wrong.Number == tt.want && string(wrong.Record) == strings.Split(tt.text, "\n")[tt.want-1] || err == nil && tt.want == 0 {
			continue
		}
		t.Errorf("%q: %v, want record %d", tt.text, err, tt.want)
	}
}
