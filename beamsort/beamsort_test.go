package beamsort

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/local"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	"github.com/freehold-go/freehold/extsort"
	"github.com/freehold-go/freehold/internal/panics"
)

func init() {
	beam.RegisterFunction(pairOf)
	beam.RegisterDoFn(&joinFn{})
	filesystem.Register("flaky", func(ctx context.Context) filesystem.Interface { return flaky{local.New(ctx)} })
	filesystem.Register("stream", func(ctx context.Context) filesystem.Interface { return stream{local.New(ctx)} })
}

// flaky is the local file system, but the file operation that ends the countdown fails.
type flaky struct{ filesystem.Interface }

var (
	countdown atomic.Int64
	errFlaky  = errors.New("the disk is gone")
)

func (f flaky) path(name string) string { return strings.TrimPrefix(name, "flaky://") }

func step() error {
	if countdown.Add(-1) == 0 {
		return errFlaky
	}
	return nil
}

func (f flaky) List(ctx context.Context, glob string) ([]string, error) {
	names, err := f.Interface.List(ctx, f.path(glob))
	for i := range names {
		names[i] = "flaky://" + names[i]
	}
	return names, err
}

func (f flaky) OpenRead(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := step(); err != nil {
		return nil, err
	}
	return f.Interface.OpenRead(ctx, f.path(name))
}

func (f flaky) OpenWrite(ctx context.Context, name string) (io.WriteCloser, error) {
	if err := step(); err != nil {
		return nil, err
	}
	w, err := f.Interface.OpenWrite(ctx, f.path(name))
	return flakyFile{w}, err
}

func (f flaky) Size(ctx context.Context, name string) (int64, error) {
	return f.Interface.Size(ctx, f.path(name))
}

func (f flaky) Remove(ctx context.Context, name string) error {
	if err := step(); err != nil {
		return err
	}
	return f.Interface.(filesystem.Remover).Remove(ctx, f.path(name))
}

func (f flaky) Rename(ctx context.Context, from, to string) error {
	if err := step(); err != nil {
		return err
	}
	return f.Interface.(filesystem.Renamer).Rename(ctx, f.path(from), f.path(to))
}

type flakyFile struct{ io.WriteCloser }

func (f flakyFile) Write(b []byte) (int, error) {
	if err := step(); err != nil {
		n, _ := f.WriteCloser.Write(b[:len(b)/2])
		return n, err
	}
	return f.WriteCloser.Write(b)
}

// stream is the local file system without seeking.
type stream struct{ filesystem.Interface }

func (s stream) List(ctx context.Context, glob string) ([]string, error) {
	names, err := s.Interface.List(ctx, strings.TrimPrefix(glob, "stream://"))
	for i := range names {
		names[i] = "stream://" + names[i]
	}
	return names, err
}

func (s stream) OpenRead(ctx context.Context, name string) (io.ReadCloser, error) {
	f, err := s.Interface.OpenRead(ctx, strings.TrimPrefix(name, "stream://"))
	return struct{ io.ReadCloser }{f}, err
}

func (s stream) Size(ctx context.Context, name string) (int64, error) {
	return s.Interface.Size(ctx, strings.TrimPrefix(name, "stream://"))
}

// input writes files with lines of many lengths and returns their lines in order. One file ends
// without a newline, and one is empty.
func input(t *testing.T, dir string) []byte {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	var lines [][]byte
	for i := range 4 {
		var text []byte
		for range 2000 * i {
			line := []byte(fmt.Sprintf("%0*d", r.IntN(40), r.IntN(3000)))
			if r.IntN(500) == 0 {
				line = bytes.Repeat(line, 3000) // longer than a buffer and a range
			}
			lines = append(lines, line)
			text = append(append(text, line...), '\n')
		}
		if i == 2 {
			text = text[:len(text)-1]
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.txt", i)), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	slices.SortFunc(lines, bytes.Compare)
	return append(bytes.Join(lines, []byte("\n")), '\n')
}

// parts returns the concatenated sorted files, and fails the test if there are other files.
func parts(t *testing.T, dir string, n int) []byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for i, e := range entries {
		if want := fmt.Sprintf("sorted-%05d-of-%05d", i, n); e.Name() != want {
			t.Errorf("there is %s, want %s", e.Name(), want)
		}
		part, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, part...)
	}
	if len(entries) != n {
		t.Errorf("%d parts, want %d", len(entries), n)
	}
	return all
}

func runJob(build func(beam.Scope)) error {
	p, s := beam.NewPipelineWithRoot()
	build(s)
	_, err := beam.Run(context.Background(), "prism", p)
	return err
}

func TestMain(m *testing.M) {
	beam.Init()
	os.Exit(m.Run())
}

func TestSortFiles(t *testing.T) {
	in, out, temp := t.TempDir(), t.TempDir(), t.TempDir()
	want := input(t, in)
	options := &Options{Temp: "flaky://" + temp + "/new", Parts: 5, RangeBytes: 100_000, MemoryBytes: 1 << 20, LocalTemp: t.TempDir()}
	for _, scheme := range []string{"flaky", "stream"} {
		if err := runJob(func(s beam.Scope) { SortFiles(s, scheme+"://"+in+"/*.txt", "flaky://"+out+"/sorted", options) }); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(parts(t, out, 5), want) {
			t.Errorf("%s: the parts are not the sorted lines", scheme)
		}
	}
	if left, err := os.ReadDir(temp + "/new"); err != nil || len(left) > 0 {
		t.Errorf("Temp has %v, %v", left, err)
	}
	empty := t.TempDir()
	if err := runJob(func(s beam.Scope) { SortFiles(s, "flaky://"+in+"/0.txt", "flaky://"+empty+"/sorted", nil) }); err != nil {
		t.Fatal(err)
	}
	if all := parts(t, empty, 16); len(all) > 0 {
		t.Errorf("no lines are sorted to %q", all)
	}
	full := &sortFn{Temp: "flaky://" + temp + "/t", MemoryBytes: 1 << 20, LocalTemp: temp + "/none"}
	if err := full.ProcessElement(t.Context(), 0, each([]string{"flaky://" + in + "/1.txt", "flaky://" + in + "/3.txt"}), nil); err == nil || !strings.Contains(err.Error(), full.LocalTemp) {
		t.Errorf("without a LocalTemp: %v", err)
	}
	if err := runJob(func(s beam.Scope) { SortFiles(s, "flaky://"+in+"/none", "flaky://"+out+"/sorted", nil) }); err == nil || !strings.Contains(err.Error(), "no file matches") {
		t.Errorf("without a file: %v", err)
	}
}

// Each line is in exactly one range, wherever the ranges end, and each range has samples. A file
// that cannot seek is one range.
func TestRanges(t *testing.T) {
	text := strings.Repeat("\na\nbc\n0123456789\n", 20) + "end\n"
	in := t.TempDir()
	if err := os.WriteFile(in+"/text", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"flaky", "stream"} {
		for _, size := range []int64{1, 2, 3, 7, 50, 1000} {
			var got []byte
			n := 0
			if err := (&listFn{Glob: scheme + "://" + in + "/text", Bytes: size, Parts: 1}).ProcessElement(t.Context(), nil, func(r byteRange) {
				n++
				lines, err := openLines(t.Context(), r.File, r.Begin, r.End)
				if err != nil || r.Samples < 1 {
					t.Fatalf("%+v: %v", r, err)
				}
				defer lines.close()
				for line, err := lines.next(); err == nil; line, err = lines.next() {
					got = append(got, line...)
				}
			}); err != nil {
				t.Fatal(err)
			}
			if string(got) != text || scheme == "stream" && n != 1 {
				t.Errorf("%s: %d ranges of %d bytes have the lines %q", scheme, n, size, got)
			}
		}
	}
}

// Samples are at equal distances, so parts have similar sizes.
func TestSamples(t *testing.T) {
	in := t.TempDir()
	var text []byte
	for i := range 1000 {
		text = fmt.Appendf(text, "%04d\n", i)
	}
	if err := os.WriteFile(in+"/text", text, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"flaky", "stream"} {
		var samples [][]byte
		r := byteRange{File: scheme + "://" + in + "/text", End: int64(len(text)), Samples: 10}
		if err := (&sampleFn{}).ProcessElement(t.Context(), r, func(line []byte) { samples = append(samples, line) }); err != nil {
			t.Fatal(err)
		}
		split := (&splitFn{Parts: 5}).ProcessElement(nil, each(samples))
		if got := string(bytes.Join(split.Lines, nil)); got != "0200\n0400\n0600\n0800\n" {
			t.Errorf("%s: parts begin at %q", scheme, got)
		}
		if before, at := split.part([]byte("0399\n")), split.part([]byte("0400\n")); before != 1 || at != 2 {
			t.Errorf("%s: 0399 is in part %d, 0400 in %d", scheme, before, at)
		}
	}
}

// A worker fails at any of its operations, after part of its output, and its bundle is repeated.
// Prism ends a job whose bundle fails, so the test calls the DoFns itself, as another runner
// would.
func TestBundlesMayBeRepeated(t *testing.T) {
	in := t.TempDir()
	want := input(t, in)
	ctx := t.Context()
	failures := 0
	for n := int64(1); ; n += 7 {
		out := t.TempDir()
		failed := false
		repeat := func(bundle func() error) {
			t.Helper()
			err := bundle()
			if errors.Is(err, errFlaky) {
				failed = true
				err = bundle()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		countdown.Store(n)
		var ranges []byteRange
		repeat(func() error {
			ranges = nil
			return (&listFn{Glob: "flaky://" + in + "/*.txt", Bytes: 300_000, Parts: 3}).ProcessElement(ctx, nil, func(r byteRange) { ranges = append(ranges, r) })
		})
		var samples [][]byte
		for _, r := range ranges {
			r.Samples = 20
			repeat(func() error {
				return (&sampleFn{}).ProcessElement(ctx, r, func(line []byte) { samples = append(samples, line) })
			})
		}
		split := (&splitFn{Parts: 3}).ProcessElement(nil, each(samples))
		temp := "flaky://" + out + "/temp"
		pieces := make([][]string, 3)
		for _, r := range ranges {
			repeat(func() error {
				emitted := make([]string, 3)
				if err := (&partitionFn{Temp: temp}).ProcessElement(ctx, r, split, func(i int, name string) { emitted[i] = name }); err != nil {
					return err
				}
				for i, name := range emitted {
					pieces[i] = append(pieces[i], name)
				}
				return nil
			})
		}
		var names []string
		for i := range pieces {
			repeat(func() error {
				return (&sortFn{Temp: temp, Output: "flaky://" + out + "/sorted", Parts: 3, MemoryBytes: 1 << 20}).ProcessElement(ctx, i, each(pieces[i]), func(name string) { names = append(names, name) })
			})
		}
		repeat(func() error { return (&cleanFn{Temp: temp}).ProcessElement(ctx, nil, each(names)) })
		if !bytes.Equal(parts(t, out, 3), want) {
			t.Fatalf("after a failure at operation %d the parts are not the sorted lines", n)
		}
		if !failed {
			break
		}
		failures++
	}
	if failures < 10 {
		t.Errorf("only %d failures", failures)
	}
}

// each returns an iterator like the ones that runners pass to DoFns.
func each[T any](all []T) func(*T) bool {
	return func(next *T) bool {
		if len(all) == 0 {
			return false
		}
		*next, all = all[0], all[1:]
		return true
	}
}

func pairOf(i int) (int, Pair) {
	value := []string{"30c", "15long", "10a", "0\x00", "20b"}[i]
	return i % 2, Pair{Key: []byte(value[:2]), Value: []byte(value[2:])}
}

// joinFn joins the values of a group in the order of their keys.
type joinFn struct{}

func (f *joinFn) ProcessElement(ctx context.Context, group int, pairs func(*Pair) bool, emit func(string)) error {
	joined := fmt.Sprint(group, ":")
	for p, err := range SortValues(ctx, &extsort.Options{MemoryBytes: extsort.MinMemoryBytes}, pairs) {
		if err != nil {
			return err
		}
		joined += " " + string(p.Key) + "=" + string(p.Value)
	}
	if want := map[int]string{0: "0: 10=a 20=b 30=c", 1: "1: 0\x00= 15=long"}[group]; joined != want {
		return fmt.Errorf("%q, want %q", joined, want)
	}
	emit(joined)
	return nil
}

func TestSortValuesInAJob(t *testing.T) {
	if err := runJob(func(s beam.Scope) {
		beam.ParDo(s, &joinFn{}, beam.GroupByKey(s, beam.ParDo(s, pairOf, beam.Create(s, 0, 1, 2, 3, 4))))
	}); err != nil {
		t.Fatal(err)
	}
}

func TestOptionsThatAreNone(t *testing.T) {
	for _, o := range []Options{{Parts: -1}, {RangeBytes: -1}} {
		_, s := beam.NewPipelineWithRoot()
		if panics.Of(func() { SortFiles(s, "a", "b", &o) }) == "" {
			t.Errorf("%+v: no panic", o)
		}
	}
}

// SortValues sorts more pairs than memory holds. Pairs with equal keys keep their order.
func TestSortValuesBeyondMemory(t *testing.T) {
	const n = 50_000
	i, temp := 0, t.TempDir()
	group := func(p *Pair) bool {
		p.Key = []byte(fmt.Sprintf("%03d", i*7919%1000))
		p.Value = []byte(fmt.Sprintf("%06d", n-i))
		i++
		return i <= n
	}
	var last Pair
	got := 0
	sorted := func(dir string) iter.Seq2[Pair, error] {
		i = 0
		return SortValues(t.Context(), &extsort.Options{MemoryBytes: extsort.MinMemoryBytes, TempDirs: []string{dir}, ThenRecord: true}, group)
	}
	for p, err := range sorted(temp) {
		if err != nil {
			t.Fatal(err)
		}
		if c := bytes.Compare(p.Key, last.Key); c < 0 || c == 0 && bytes.Compare(p.Value, last.Value) >= 0 || cap(p.Key) > len(p.Key) {
			t.Fatalf("%s after %s", p, last)
		}
		last = Pair{bytes.Clone(p.Key), bytes.Clone(p.Value)}
		got++
	}
	if got != n {
		t.Errorf("%d pairs, want %d", got, n)
	}
	for range sorted(temp) {
		break
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("a loop that ends early leaves %v, %v", left, err)
	}
	var err error
	for _, err = range sorted(temp + "/none") {
	}
	if err == nil || i > n {
		t.Errorf("without temporary files: %v, and all pairs are read: %t", err, i > n)
	}
}
