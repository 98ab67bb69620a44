// Inputs in any order: Sort, SortFile, Sorted and SortedSeq against the model.

package extsort_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/extsort"
)

// sizes are of inputs: within the memory, a few runs, and many. The merge of the
// last takes two passes.
func sizes() []int {
	if testing.Short() {
		return []int{50 << 10, 300 << 10}
	}
	return []int{50 << 10, 150 << 10, 600 << 10, 4 << 20}
}

func TestSort(t *testing.T) {
	for _, size := range sizes() {
		try := some(7, 29)
		if size >= 4<<20 {
			try = some(43, 43)
		}
		for _, in := range inputs(size) {
			for _, v := range variants {
				for _, parallel := range []int{1, 2, 8} {
					if len(in.text) < size/2 && size >= 4<<20 || !try() {
						continue
					}
					t.Run(fmt.Sprintf("%s/%d/%s/%d", in.name, size, v.name, parallel), func(t *testing.T) {
						o := v.o
						o.MemoryBytes = extsort.MinMemoryBytes * parallel
						o.Parallel = parallel
						o.TempDirs = []string{t.TempDir()}
						var out bytes.Buffer
						must(t, extsort.Sort(context.Background(), &out, &o, strings.NewReader(in.text)))
						same(t, out.String(), joinLines(sortedBy(splitLines(in.text), &o)))
					})
				}
			}
		}
	}
}

// Records that differ have equal keys of more than a word: none is taken for another.
func TestLongKeysThatRepeat(t *testing.T) {
	for _, size := range []int{10 << 10, 100 << 10} {
		for _, reverse := range []bool{false, true} {
			o := smallest(t)
			o.Reverse = reverse
			o.Key = func(dst, r []byte) []byte { return append(append(dst, r[0]), " and more than a word"...) }
			var lines [][]byte
			for i := range size / 10 {
				lines = append(lines, fmt.Appendf(nil, "%d of %d", i%7, i))
			}
			got := freehold.Must(sortString(o, joinLines(lines)))
			same(t, got, joinLines(sortedBy(lines, o)))
		}
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

// The other formats, with the same inputs, cut to their records.
func TestFormats(t *testing.T) {
	tests := []struct {
		name   string
		format extsort.Format
		key    func(dst, r []byte) []byte
		cut    func(text []byte) (records [][]byte, raw []byte)
	}{
		{"NUL", extsort.Lines(0), nil, cutAtNUL},
		{"1", extsort.Fixed(1), nil, cutTo(1)},
		{"7", extsort.Fixed(7), nil, cutTo(7)},
		{"24 by 8", extsort.FixedBy(24, 8, 8), func(_, r []byte) []byte { return r[8:16] }, cutTo(24)},
		{"64 by none", extsort.FixedBy(64, 64, 0), func(_, r []byte) []byte { return nil }, cutTo(64)},
		{"4096", extsort.Fixed(4096), nil, cutTo(4096)},
		{"framed", extsort.LengthPrefixed(), nil, cutToFrames},
	}
	try := some(3, 29)
	for _, in := range inputs(200 << 10) {
		for _, tt := range tests {
			for _, withKey := range []bool{false, true} {
				if !try() {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%v", in.name, tt.name, withKey), func(t *testing.T) {
					text := in.text
					if tt.name == "1" {
						text = text[:len(text)/4] // each byte takes sixteen more: it does not fit either
					}
					records, raw := tt.cut([]byte(text))
					o := extsort.Options{Key: tt.key, Reverse: len(in.text)%2 == 0}
					if withKey {
						o.Key = func(dst, r []byte) []byte { return append(dst, r[len(r)/2:]...) }
					}
					want := sortedBy(records, &o)
					if !withKey {
						o.Key = nil
					}
					o.Format, o.MemoryBytes, o.Parallel, o.TempDirs = tt.format, extsort.MinMemoryBytes, 1, []string{t.TempDir()}
					i := 0
					for r, err := range extsort.Sorted(context.Background(), &o, bytes.NewReader(raw)) {
						must(t, err)
						if i >= len(want) || !bytes.Equal(r, want[i]) {
							t.Fatalf("record %d of %d is %.40q", i, len(want), r)
						}
						i++
					}
					if i != len(want) {
						t.Fatalf("%d records, want %d", i, len(want))
					}
					// A second sort has the first one's output as its input.
					var out, again bytes.Buffer
					must(t, extsort.Sort(context.Background(), &out, &o, iotest.HalfReader(bytes.NewReader(raw))))
					if err := extsort.Check(context.Background(), &o, bytes.NewReader(out.Bytes())); err != nil {
						t.Error(err)
					}
					must(t, extsort.Merge(context.Background(), &again, &o, bytes.NewReader(out.Bytes())))
					if out.Len() != len(raw) || !bytes.Equal(again.Bytes(), out.Bytes()) {
						t.Errorf("%d bytes became %d and, merged, %d", len(raw), out.Len(), again.Len())
					}
				})
			}
		}
	}
}

func cutAtNUL(text []byte) (records [][]byte, raw []byte) {
	raw = bytes.TrimRight(text, "\x00")
	if len(raw) == 0 {
		return nil, nil
	}
	raw = append(slices.Clone(raw), 0)
	for r := range bytes.SplitSeq(raw[:len(raw)-1], []byte{0}) {
		if len(r) > 10000 {
			raw = nil
			break
		}
		records = append(records, r)
	}
	if raw == nil {
		return nil, nil // a text without NUL is one record, and too long
	}
	return records, raw
}

func cutTo(size int) func([]byte) ([][]byte, []byte) {
	return func(text []byte) (records [][]byte, raw []byte) {
		text = text[:len(text)/size*size]
		return slices.Collect(slices.Chunk(text, size)), text
	}
}

// cutToFrames makes frames of lines, so that many are empty.
func cutToFrames(text []byte) (records [][]byte, raw []byte) {
	records = splitLines(string(text))
	for _, r := range records {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(len(r)))
		raw = append(raw, r...)
	}
	return records, raw
}

func TestSortedMayStop(t *testing.T) {
	o := smallest(t)
	o.Parent = alloctest.New(t)
	for r, err := range extsort.Sorted(context.Background(), o, strings.NewReader(large())) {
		if err != nil || len(r) != 16 {
			t.Errorf("%q, %v", r, err)
		}
		break
	}
	noFiles(t, o.TempDirs[0])
}

// Records of a sequence may have any bytes, and share memory.
func TestSortedSeq(t *testing.T) {
	try := some(1, 3)
	for n, in := range inputs(300 << 10) {
		if !try() {
			continue
		}
		v := variants[n%4]
		o := v.o
		o.MemoryBytes, o.Parallel, o.Parent = 2*extsort.MinMemoryBytes, 2, alloctest.New(t)
		records := bytes.Split([]byte(in.text), []byte("a"))
		if slices.ContainsFunc(records, func(r []byte) bool { return len(r) > 10_000 }) {
			continue
		}
		memory := make([]byte, 10_000)
		seq := func(yield func([]byte) bool) {
			for _, r := range records {
				if !yield(memory[:copy(memory, r)]) {
					return
				}
			}
		}
		want := sortedBy(records, &o)
		i := 0
		for r, err := range extsort.SortedSeq(context.Background(), &o, seq) {
			must(t, err)
			if i >= len(want) || !bytes.Equal(r, want[i]) {
				t.Fatalf("%s, %s: record %d of %d is %.40q", in.name, v.name, i, len(want), r)
			}
			i++
		}
		if i != len(want) {
			t.Errorf("%s, %s: %d records, want %d", in.name, v.name, i, len(want))
		}
	}
}

// A sequence that does not end stops with the context, and its panic passes.
func TestSortedSeqStops(t *testing.T) {
	cause := errors.New("the user's reason")
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	left, stopped := 100_000, false
	endless := func(yield func([]byte) bool) {
		defer func() { stopped = true }()
		for yield([]byte("record")) {
			if left--; left == 0 {
				cancel(cause)
			}
		}
	}
	for r, err := range extsort.SortedSeq(ctx, smallest(t), endless) {
		if !errors.Is(err, cause) || r != nil {
			t.Errorf("%q, %v, want the context's cause", r, err)
		}
	}
	if left != 0 || !stopped {
		t.Errorf("%d records left, ended: %v", left, stopped)
	}
	defer func() {
		if p := recover(); p != "mine" {
			t.Errorf("panicked with %v", p)
		}
	}()
	o := smallest(t)
	o.MemoryBytes, o.Parallel = 2*extsort.MinMemoryBytes, 2
	for range extsort.SortedSeq(context.Background(), o, func(func([]byte) bool) { panic("mine") }) {
		t.Error("a record of a sequence without any")
	}
}

func TestSortFile(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	text := large()
	must(t, os.WriteFile(path, []byte(text), 0o640))
	target := path
	if os.Symlink("file", link) == nil {
		target = link
	}
	o := smallest(t)
	must(t, extsort.SortFile(context.Background(), target, o, path))
	got := freehold.Must(os.ReadFile(path))
	same(t, string(got), joinLines(sortedBy(splitLines(text), o)))
	if info, err := os.Lstat(path); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o640 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	for name, sources := range map[string][]string{filepath.Join(dir, "new"): {path, path}, path: {path, filepath.Join(dir, "missing")}} {
		err := extsort.SortFile(context.Background(), name, o, sources...)
		if (err == nil) != (name != path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if unchanged, _ := os.ReadFile(path); string(unchanged) != string(got) {
		t.Error("a sort that failed changed its output")
	}
	if err := extsort.SortFile(context.Background(), dir, o, path); err == nil {
		t.Error("a directory is no output")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left %v behind", left)
	}
}

// A result that cannot get its name is an error of SortFile, and leaves nothing else behind.
func TestSortFileThatCannotReplace(t *testing.T) {
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	if err := os.WriteFile(src, []byte("b\na\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := &extsort.Options{Progress: func(extsort.Progress) { _ = os.Mkdir(dst, 0o700) }}
	if err := extsort.SortFile(context.Background(), dst, o, src); err == nil {
		t.Error("a directory was replaced")
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 2 {
		t.Errorf("%v are left; %v", all, err)
	}
}

// Done never falls and ends at Total, with keys, several passes and equal records.
func TestProgress(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in")
	for memory, times := range map[int]int{extsort.MinMemoryBytes: 3, 1 << 20: 2, 16 << 20: 1} {
		text := strings.Repeat(large(), times)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		for key, o := range withKeys() {
			for _, unique := range []bool{false, true} {
				o.MemoryBytes, o.Parallel, o.Unique, o.TempDirs = memory, 2, unique, []string{t.TempDir()}
				var last extsort.Progress
				merged := false
				o.Progress = func(p extsort.Progress) {
					if p.Phase == last.Phase && p.Done < last.Done || p.Done > p.Total || p.Phase != last.Phase && last.Done != last.Total {
						t.Errorf("%s, unique %t, %d bytes: %+v after %+v", key, unique, memory, p, last)
					}
					if p.Phase == extsort.PhaseReading && p.Total != int64(len(text)) {
						t.Errorf("%s, unique %t, %d bytes: %+v while %d bytes are read", key, unique, memory, p, len(text))
					}
					merged = merged || p.Phase == extsort.PhaseMerging
					last = p
				}
				must(t, extsort.SortFile(context.Background(), path+".out", o, path))
				if last.Phase != extsort.PhaseWriting || last.Done != last.Total || merged != (memory == extsort.MinMemoryBytes) {
					t.Errorf("%s, unique %t, %d bytes: it ended with %+v, runs merged to fewer: %t", key, unique, memory, last, merged)
				}
			}
		}
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

// FuzzSort compares any lines in any order with the model.
func FuzzSort(f *testing.F) {
	for i, in := range inputs(2000) {
		f.Add([]byte(in.text), uint8(i))
	}
	f.Fuzz(func(t *testing.T, text []byte, how uint8) {
		o := variants[int(how)%len(variants)].o
		o.MemoryBytes, o.Parallel = extsort.MinMemoryBytes, 1+int(how)%3
		lines := splitLines(string(text))
		for _, l := range lines {
			if len(l) > 10000 {
				return
			}
		}
		// Often enough to need temporary files.
		if how >= 128 && len(text) > 0 {
			lines = slices.Repeat(lines, 1<<19/len(text)+1)
		}
		got := freehold.Must(sortString(&o, joinLines(lines)))
		same(t, got, joinLines(sortedBy(lines, &o)))
	})
}
