// What the caller, the memory, the destination and the directories of temporary files may do wrong.

package extsort_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/extsort"
)

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
		//lint:ignore SA1012 the panic is tested
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

func TestParentOutOfMemory(t *testing.T) {
	o := smallest(t)
	o.Parent = alloctest.FailAfter(alloctest.New(t), 0)
	if _, err := sortString(o, "a\n"); !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Errorf("%v, want ErrOutOfMemory", err)
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

// A Write that writes less than it was given, and says nothing, fails.
func TestShortWrites(t *testing.T) {
	half := writerFunc(func(b []byte) (int, error) { return len(b) / 2, nil })
	for key, o := range withKeys() {
		for name, call := range map[string]func(context.Context, io.Writer, *extsort.Options, ...io.Reader) error{"Sort": extsort.Sort, "Merge": extsort.Merge} {
			if err := call(context.Background(), half, o, strings.NewReader("a\nb\n")); !errors.Is(err, io.ErrShortWrite) {
				t.Errorf("%s, %s: %v, want io.ErrShortWrite", name, key, err)
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
