package extsort_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/extsort"
)

// large is more lines than small memory holds.
var large = sync.OnceValue(func() string {
	r := rand.New(rand.NewPCG(3, 4))
	var b strings.Builder
	for b.Len() < 1<<19 {
		fmt.Fprintf(&b, "%016x\n", r.Uint64())
	}
	return b.String()
})

// smallest is memory with which large needs temporary files.
func smallest(t *testing.T) *extsort.Options {
	return &extsort.Options{MemoryBytes: extsort.MinMemoryBytes, Parallel: 1, TempDirs: []string{t.TempDir()}}
}

func sortString(o *extsort.Options, text string) (string, error) {
	var out bytes.Buffer
	err := extsort.Sort(context.Background(), &out, o, strings.NewReader(text))
	return out.String(), err
}

func TestParentOutOfMemory(t *testing.T) {
	o := smallest(t)
	o.Parent = alloctest.FailAfter(alloctest.New(t), 0)
	if _, err := sortString(o, "a\n"); !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Errorf("%v, want ErrOutOfMemory", err)
	}
}

// What grows with the input is in the memory from Parent, of which there is one block,
// and no record is an allocation.
func TestNeverMoreThanMemory(t *testing.T) {
	text := large()
	if !testing.Short() {
		text = strings.Repeat(text, 4)
	}
	lines := strings.Count(text, "\n")
	freehold.Pages().Free(freehold.Must(freehold.Pages().Alloc(extsort.MinMemoryBytes, 8))) // addresses, which race builds have from Go
	for name, o := range withKeys() {
		for _, unique := range []bool{false, true} {
			o.MemoryBytes, o.Parallel, o.Unique, o.TempDirs = extsort.MinMemoryBytes, 1, unique, []string{t.TempDir()}
			limit := freehold.NewLimit(freehold.Pages(), o.MemoryBytes)
			o.Parent = limit
			for call, f := range calls {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				if err := f(context.Background(), o, strings.NewReader(text)); err != nil && !errors.As(err, new(*extsort.DisorderError)) {
					t.Fatal(err)
				}
				runtime.ReadMemStats(&after)
				if bytes, n := after.TotalAlloc-before.TotalAlloc, after.Mallocs-before.Mallocs; bytes > uint64(len(text)/4) || n > uint64(lines/5) {
					t.Errorf("%s, %s, unique %v: %d allocations of %d bytes on the Go heap for %d lines of %d", call, name, unique, n, bytes, lines, len(text))
				}
				if limit.Used() != 0 {
					t.Errorf("%d bytes are in use afterwards", limit.Used())
				}
			}
		}
	}
}

func TestArgumentsPanic(t *testing.T) {
	ctx, text := t.Context(), strings.NewReader("b\na\n")
	tests := []struct {
		want string
		call func()
	}{
		{"extsort.Fixed: size 0, want 1 or more", func() { extsort.Fixed(0) }},
		{"extsort.FixedBy: size 0", func() { extsort.FixedBy(0, 0, 0) }},
		{"extsort.FixedBy: offset 5, want 0 to 4", func() { extsort.FixedBy(4, 5, 0) }},
		{"extsort.FixedBy: key length 2, want 0 to 1", func() { extsort.FixedBy(4, 3, 2) }},
		{"extsort.Sort: MemoryBytes -1", func() { sortString(&extsort.Options{MemoryBytes: -1}, "") }},
		{"extsort.Sort: MemoryBytes 1, want 0 or at least", func() { sortString(&extsort.Options{MemoryBytes: 1}, "") }},
		{"extsort.Sort: dst is nil", func() { extsort.Sort(ctx, nil, nil, text) }},
		{"extsort.Sort: ctx is nil", func() { extsort.Sort(nil, io.Discard, nil, text) }},
		{"extsort.Sort: source 1 is nil", func() { extsort.Sort(ctx, io.Discard, nil, text, nil) }},
		{"extsort.Merge: dst is nil", func() { extsort.Merge(ctx, nil, nil, text) }},
		{"extsort.Merge: source 0 is nil", func() { extsort.Merge(ctx, io.Discard, nil, nil, text) }},
		{"extsort.Check: source 0 is nil", func() { extsort.Check(ctx, nil, nil) }},
		{"extsort.Sorted: source 0 is nil", func() { extsort.Sorted(ctx, nil, nil)(func([]byte, error) bool { return true }) }},
		{"extsort.SortedSeq: seq is nil", func() { extsort.SortedSeq(ctx, nil, nil) }},
		{"extsort.Sort: Parallel -1", func() { sortString(&extsort.Options{Parallel: -1}, "") }},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			defer func() {
				if p := fmt.Sprint(recover()); !strings.HasPrefix(p, "freehold: "+tt.want) {
					t.Errorf("panicked with %s", p)
				}
			}()
			tt.call()
		})
	}
}

// The longest record that is allowed can be sorted, however many there are.
func TestLongestRecords(t *testing.T) {
	o := smallest(t)
	var record *extsort.TooLongError
	if _, err := sortString(o, strings.Repeat("x", extsort.MinMemoryBytes)); !errors.As(err, &record) {
		t.Fatal(err)
	}
	longest := strings.Repeat("x", record.Max-10)
	var lines [][]byte
	for i := range 60 {
		lines = append(lines, fmt.Appendf(nil, "%s%09d", longest, i*7%60))
	}
	for _, o := range []*extsort.Options{smallest(t), {MemoryBytes: 4 * extsort.MinMemoryBytes, Parallel: 4, Unique: true}} {
		got := freehold.Must(sortString(o, joinLines(lines)))
		same(t, got, joinLines(sortedBy(lines, o)))
	}
}

func TestInputEndsWithinARecord(t *testing.T) {
	const whole, cut = "\x01\x00\x00\x00a\x00\x00\x00", "\x01\x00\x00\x00abc"
	key := func(_, r []byte) []byte { return r }
	for _, tt := range []struct {
		o    extsort.Options
		at   int64
		have int
	}{
		{extsort.Options{Format: extsort.Fixed(4)}, 4, 3},
		{extsort.Options{Format: extsort.Fixed(8)}, 0, 7},
		{extsort.Options{Format: extsort.Fixed(4), Key: key}, 4, 3},
		{extsort.Options{Format: extsort.LengthPrefixed()}, 5, 2},
		{extsort.Options{Format: extsort.LengthPrefixed(), Key: key}, 5, 2},
	} {
		first := whole
		if tt.o.Format == extsort.LengthPrefixed() {
			first = whole[:5]
		}
		for name, err := range map[string]error{
			"Sort":  extsort.Sort(t.Context(), io.Discard, &tt.o, strings.NewReader(first), strings.NewReader(cut)),
			"Merge": extsort.Merge(t.Context(), io.Discard, &tt.o, strings.NewReader(first), strings.NewReader(cut)),
			"Check": extsort.Check(t.Context(), &tt.o, strings.NewReader(cut)),
		} {
			want := extsort.TruncatedError{Source: 1, Offset: tt.at, Bytes: tt.have}
			if name == "Check" {
				want.Source = 0
			}
			var got *extsort.TruncatedError
			if !errors.Is(err, io.ErrUnexpectedEOF) || !errors.As(err, &got) || *got != want {
				t.Errorf("%s: %v, want %v", name, err, &want)
			}
		}
	}
}

func TestTempDirs(t *testing.T) {
	o := smallest(t)
	missing := filepath.Join(t.TempDir(), "missing")
	o.TempDirs = []string{missing}
	if _, err := sortString(o, large()); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "temporary file") {
		t.Errorf("%v, want an error about the temporary file", err)
	}
	if _, err := sortString(o, "b\na\n"); err != nil {
		t.Errorf("%v, but no temporary file is needed", err)
	}
	// Workers take them in turn: the second one has the second.
	o.TempDirs, o.Parallel, o.MemoryBytes = []string{t.TempDir(), missing}, 2, 2*extsort.MinMemoryBytes
	if _, err := sortString(o, large()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want an error about the second directory", err)
	}
	o.TempDirs = append(o.TempDirs[:1], o.TempDirs[0], missing)
	if _, err := sortString(o, large()); err != nil {
		t.Errorf("%v, but the third directory is nobody's", err)
	}
}

// The directory of temporary files goes when more of them are needed.
func TestTempDirIsRemovedMeanwhile(t *testing.T) {
	text := large()
	for len(text) < 2<<20 {
		text += text
	}
	dir := t.TempDir()
	in, out, temp := filepath.Join(dir, "in"), filepath.Join(dir, "out"), filepath.Join(dir, "temp")
	for _, err := range []error{os.WriteFile(in, []byte(text), 0o600), os.WriteFile(out, []byte("old"), 0o600), os.Mkdir(temp, 0o700)} {
		must(t, err)
	}
	o := smallest(t)
	o.TempDirs = []string{temp}
	var kept error
	o.Progress = func(p extsort.Progress) {
		if p.Phase == extsort.PhaseMerging && p.Done == 0 {
			kept = os.Remove(temp)
		}
	}
	err := extsort.SortFile(context.Background(), out, o, in)
	if kept != nil {
		t.Skip("the files in it have names: ", kept)
	}
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "temporary file") {
		t.Errorf("%v, want an error about the temporary file", err)
	}
	if got, _ := os.ReadFile(out); string(got) != "old" {
		t.Errorf("the output has %d bytes", len(got))
	}
	if got, _ := os.ReadFile(in); string(got) != text {
		t.Error("the input has changed")
	}
}

// An input that is truncated while it is read ends there.
func TestInputIsTruncatedMeanwhile(t *testing.T) {
	text := large()
	const left = 100_003
	for _, format := range []extsort.Format{extsort.Lines('\n'), extsort.Fixed(17)} {
		dir := t.TempDir()
		in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
		must(t, os.WriteFile(in, []byte(text), 0o600))
		o := smallest(t)
		o.Format = format
		o.Progress = func(p extsort.Progress) {
			if p.Phase == extsort.PhaseReading && p.Done < left {
				if err := os.Truncate(in, left); err != nil {
					t.Error(err)
				}
			}
		}
		err := extsort.SortFile(context.Background(), out, o, in)
		if format != extsort.Lines('\n') {
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%v, want io.ErrUnexpectedEOF", err)
			}
			continue
		}
		must(t, err)
		got, _ := os.ReadFile(out)
		same(t, string(got), joinLines(sortedBy(splitLines(text[:left]), o)))
	}
}

var errBroken = errors.New("broken")

// brokenAfter is a writer that fails after so many bytes.
type brokenAfter int

func (b *brokenAfter) Write(p []byte) (int, error) {
	if *b -= brokenAfter(len(p)); *b < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

// noFiles fails if there is a file in dir, or an open one without a name.
func noFiles(t *testing.T, dir string) {
	t.Helper()
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%s has %v", dir, left)
	}
	const open = "/proc/self/fd"
	descriptors, _ := os.ReadDir(open)
	for _, d := range descriptors {
		if name, _ := os.Readlink(filepath.Join(open, d.Name())); strings.HasPrefix(name, dir) {
			t.Errorf("%s is open", name)
		}
	}
}
