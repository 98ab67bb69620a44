package extsort_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/extsort"
)

// sortedBy is the model: a stable sort, then what the options say.
func sortedBy(records [][]byte, o *extsort.Options) [][]byte {
	type keyed struct {
		key, record []byte
		at          int
	}
	all := make([]keyed, len(records))
	for i, r := range records {
		all[i] = keyed{r, r, i}
		if o.Key != nil {
			all[i].key = slices.Clone(o.Key(nil, r))
		}
	}
	compare := func(a, b keyed) int {
		c := bytes.Compare(a.key, b.key)
		if c == 0 && o.ThenRecord {
			c = bytes.Compare(a.record, b.record)
		}
		if o.Reverse {
			c = -c
		}
		return c
	}
	slices.SortFunc(all, func(a, b keyed) int { return cmp.Or(compare(a, b), a.at-b.at) })
	if o.Unique {
		all = slices.CompactFunc(all, func(a, b keyed) bool { return compare(a, b) == 0 })
	}
	sorted := make([][]byte, len(all))
	for i := range all {
		sorted[i] = all[i].record
	}
	return sorted
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func joinLines(records [][]byte) string {
	var b strings.Builder
	for _, r := range records {
		b.Write(r)
		b.WriteByte('\n')
	}
	return b.String()
}

// thirdByte is a key of one byte, so that many records have equal ones.
func thirdByte(dst, r []byte) []byte {
	if len(r) < 3 {
		return append(dst, 0)
	}
	return append(dst, r[2])
}

// someZeros is a key of a few bytes, of which many begin others, also but for zeros.
func someZeros(dst, r []byte) []byte {
	for _, c := range r[:min(len(r), 4)] {
		switch c % 4 {
		case 0, 1:
			dst = append(dst, c%4)
		case 2:
			dst = append(dst, 255)
		}
	}
	return dst
}

var variants = []struct {
	name string
	o    extsort.Options
}{
	{"plain", extsort.Options{}},
	{"reverse", extsort.Options{Reverse: true}},
	{"unique", extsort.Options{Unique: true}},
	{"unique reverse", extsort.Options{Unique: true, Reverse: true}},
	{"key", extsort.Options{Key: thirdByte}},
	{"key reverse", extsort.Options{Key: thirdByte, Reverse: true}},
	{"key then record", extsort.Options{Key: thirdByte, ThenRecord: true}},
	{"key then record reverse", extsort.Options{Key: thirdByte, ThenRecord: true, Reverse: true}},
	{"keys that begin others, then record", extsort.Options{Key: someZeros, ThenRecord: true}},
	{"keys that begin others, then record, reverse, unique", extsort.Options{Key: someZeros, ThenRecord: true, Reverse: true, Unique: true}},
	{"key unique", extsort.Options{Key: thirdByte, Unique: true}},
	{"key part of the record", extsort.Options{Key: func(_, r []byte) []byte { return r[len(r)/2:] }}},
}

// sizes are of inputs: within the memory, a few runs, and many. The merge of the
// last takes two passes.
func sizes() []int {
	if testing.Short() {
		return []int{50 << 10, 300 << 10}
	}
	return []int{50 << 10, 150 << 10, 600 << 10, 4 << 20}
}

// some returns a function that picks one of n calls, or of short ones with -short:
// all combinations take minutes. Primes keep step with no dimension of them.
func some(n, short int) func() bool {
	if testing.Short() {
		n = short
	}
	calls := 0
	return func() bool {
		calls++
		return calls%n == 0
	}
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

// same fails unless got is want, and says where they differ.
func same(t *testing.T, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	g, w := strings.SplitAfter(got, "\n"), strings.SplitAfter(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("record %d of %d (want %d) is %.60q, want %.60q", i, len(g), len(w), g[i], w[i])
		}
	}
	t.Fatalf("%d records, want %d", len(g), len(w))
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
