// Sources that are slow, wrong or cut, and records that are too long.

package extsort_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/freehold-go/freehold/extsort"
)

func TestReadersThatAreWrong(t *testing.T) {
	onEachCall(t, func(t *testing.T, o *extsort.Options, call func(context.Context, *extsort.Options, ...io.Reader) error) {
		nothing := readerFunc(func([]byte) (int, error) { return 0, nil })
		if err := call(context.Background(), o, nothing); !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("Reads that return nothing: %v, want io.ErrNoProgress", err)
		}
		for _, wrong := range []int{-1, 1} {
			src := readerFunc(func(b []byte) (int, error) {
				if wrong > 0 {
					return len(b) + wrong, nil
				}
				return wrong, nil
			})
			if err := call(context.Background(), o, src); err == nil || !strings.Contains(err.Error(), "a Read of") {
				t.Errorf("a Read that returns an impossible count: %v", err)
			}
		}
		sometimes := 0
		hesitant := readerFunc(func(b []byte) (int, error) {
			if sometimes++; sometimes > 300 {
				return 0, io.EOF
			} else if sometimes%50 != 0 {
				return 0, nil
			}
			return copy(b, "a\n"), nil
		})
		if err := call(context.Background(), o, hesitant); err != nil {
			t.Errorf("Reads that return nothing at times: %v", err)
		}
	})
}

// A record that came through a pipe is used before the next one comes.
func TestPipesAreNotWaitedFor(t *testing.T) {
	for _, tt := range []struct {
		format extsort.Format
		text   string
	}{
		{extsort.Lines('\n'), "b\na\n"},
		{extsort.Fixed(2), "b\na\n"},
		{extsort.LengthPrefixed(), "\x01\x00\x00\x00b\x01\x00\x00\x00a"},
	} {
		r, w := io.Pipe()
		go fmt.Fprint(w, tt.text) // and no more
		checked := make(chan error, 1)
		go func() { checked <- extsort.Check(context.Background(), &extsort.Options{Format: tt.format}, r) }()
		select {
		case err := <-checked:
			if !errors.As(err, new(*extsort.DisorderError)) {
				t.Error(err)
			}
		case <-time.After(5 * time.Minute):
			t.Fatal("Check waits for more than it needs")
		}
		r.Close()
	}
}

// A TooLongError says which record is too long, and how long one may be.
func TestLongestRecord(t *testing.T) {
	formats := map[string]struct {
		format extsort.Format
		raw    func(n int) string // a record of n bytes
	}{
		"lines": {extsort.Lines('\n'), func(n int) string { return strings.Repeat("x", n) + "\n" }},
		"framed": {extsort.LengthPrefixed(), func(n int) string {
			return string(binary.LittleEndian.AppendUint32(nil, uint32(n))) + strings.Repeat("x", n)
		}},
	}
	for name, f := range formats {
		t.Run(name, func(t *testing.T) {
			onEachCall(t, func(t *testing.T, o *extsort.Options, call func(context.Context, *extsort.Options, ...io.Reader) error) {
				o.Format, o.MemoryBytes, o.Parallel = f.format, extsort.MinMemoryBytes, 1
				extra := 0 // bytes of keys
				if o.Key != nil {
					o.Key, extra = func(_, r []byte) []byte { return r[:min(len(r), 5)] }, 5
				}
				try := func(n int) *extsort.TooLongError {
					text := f.raw(1) + f.raw(2) + f.raw(n) + f.raw(7)
					sources := []io.Reader{strings.NewReader(text)}
					if !strings.Contains(t.Name(), "Check") {
						sources = []io.Reader{strings.NewReader(f.raw(4)), sources[0], strings.NewReader(f.raw(0))}
					}
					err := call(context.Background(), o, sources...)
					var record *extsort.TooLongError
					if err != nil && !errors.As(err, &record) && !errors.As(err, new(*extsort.DisorderError)) {
						t.Fatal(err)
					}
					if want := len(f.raw(1) + f.raw(2)); record != nil && (record.Source != (len(sources)-1)/2 || record.Offset != int64(want)) {
						t.Errorf("%d bytes: %v, want byte %d of input %d", n, err, want, (len(sources)-1)/2)
					}
					return record
				}
				long := try(1 << 20)
				if long == nil {
					t.Fatal("a record of 1 MiB is not too long")
				}
				if err := try(long.Max - extra); err != nil {
					t.Errorf("%d bytes: %v", long.Max-extra, err)
				}
				if f.format == extsort.LengthPrefixed() { // as its length says, before it is there
					var record *extsort.TooLongError
					frame := binary.LittleEndian.AppendUint32(nil, 1<<31)
					if err := call(context.Background(), o, bytes.NewReader(append(frame, 'x'))); !errors.As(err, &record) || record.Offset != 0 {
						t.Errorf("a length of 2 GiB: %v", err)
					}
				}
				if err := try(long.Max - extra + 1); err == nil || err.Max != long.Max {
					t.Errorf("%d bytes are not too long, but %d are the most: %v", long.Max-extra+1, long.Max, err)
				}
			})
		})
	}
}

// A sort continues with the records of the next input where one ends, also when
// these did not fit in a region.
func TestRecordsThatAreTooLongInTheNextRegion(t *testing.T) {
	for key, o := range withKeys() {
		o.MemoryBytes, o.Parallel = extsort.MinMemoryBytes, 1
		var first bytes.Buffer
		for first.Len() < 500<<10 {
			fmt.Fprintf(&first, "%d\n", first.Len())
		}
		second := strings.Repeat("a\n", 10_000)
		err := extsort.Sort(context.Background(), io.Discard, o, &first, strings.NewReader(second+strings.Repeat("x", 100_000)))
		var record *extsort.TooLongError
		if !errors.As(err, &record) || record.Source != 1 || record.Offset != int64(len(second)) {
			t.Errorf("%s: %v, want byte %d of input 1", key, err, len(second))
		}
	}
}

// The last line of each source may lack its end, also where a region is full there.
func TestSourcesWithoutALastNewline(t *testing.T) {
	for _, o := range withKeys() {
		o.MemoryBytes, o.Parallel, o.TempDirs = extsort.MinMemoryBytes, 1, []string{t.TempDir()}
		var sources []io.Reader
		var all [][]byte
		for i := range 400 {
			lines := splitLines(large()[i*1000:][:100+i*7])
			lines[len(lines)-1] = append(bytes.Clone(lines[len(lines)-1]), 'z')
			all = append(all, lines...)
			sources = append(sources, strings.NewReader(strings.TrimSuffix(joinLines(lines), "\n")))
		}
		var out bytes.Buffer
		must(t, extsort.Sort(context.Background(), &out, o, sources...))
		same(t, out.String(), joinLines(sortedBy(all, o)))
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

// A source that fails, as a truncated gzip stream does, gives no result: neither a
// complete one nor that of the records before.
func TestSourceThatFails(t *testing.T) {
	onEachCall(t, func(t *testing.T, o *extsort.Options, call func(context.Context, *extsort.Options, ...io.Reader) error) {
		for _, broken := range []error{io.ErrUnexpectedEOF, errors.New("broken")} {
			for _, text := range []string{"", "a", "a\n", "a\nb\nc", strings.Repeat("a\n", 60_000)} {
				o.MemoryBytes = extsort.MinMemoryBytes
				for name, src := range map[string]io.Reader{
					"after the data": io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)),
					"with the data":  iotest.DataErrReader(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken))),
					"byte by byte":   io.MultiReader(iotest.OneByteReader(strings.NewReader(text[:min(len(text), 5)])), iotest.ErrReader(broken)),
				} {
					if err := call(context.Background(), o, src, strings.NewReader("z\n")); !errors.Is(err, broken) {
						t.Errorf("%d bytes, then %v %s: %v", len(text), broken, name, err)
					}
				}
			}
		}
	})
}
