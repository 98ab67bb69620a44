// What all tests share: the model, the inputs, and the calls of the package.

package extsort_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

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

// An input is lines that have broken sorts before.
type input struct {
	name string
	text string
}

// inputs returns all kinds of input, of about size bytes each where size matters.
func inputs(size int) []input {
	r := rand.New(rand.NewPCG(1, 2))
	lines := func(f func(i int) string) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			b.WriteString(f(i))
			b.WriteByte('\n')
		}
		return b.String()
	}
	reversed := func(s string) string {
		l := strings.SplitAfter(s, "\n")
		l = l[:len(l)-1]
		var b strings.Builder
		for i := range l {
			b.WriteString(l[len(l)-1-i])
		}
		return b.String()
	}
	sorted := lines(func(i int) string { return fmt.Sprintf("line %09d", i) })
	random := func(max int, of string) string {
		b := make([]byte, r.IntN(max+1))
		for i := range b {
			b[i] = of[r.IntN(len(of))]
		}
		return string(b)
	}
	every := make([]byte, 0, 255)
	for b := range 256 {
		if b != '\n' {
			every = append(every, byte(b))
		}
	}
	zipf := rand.NewZipf(r, 1.3, 1, 1e6)
	return []input{
		{"empty", ""},
		{"one record", "a\n"},
		{"two records", "b\na\n"},
		{"no final newline", "b\nc\na"},
		{"one record without newline", "a"},
		{"only newlines", strings.Repeat("\n", size/8)},
		{"NUL against nothing", "a\x00\na\na\x00\x00\n\x00\n\na\x00b\nab\n"},
		{"zeros that fill words", lines(func(int) string { return "a" + strings.Repeat("\x00", r.IntN(20)) })},
		{"any bytes", lines(func(int) string { return random(30, string(every)) })},
		{"two letters", lines(func(int) string { return random(40, "ab") })},
		{"CRLF", lines(func(int) string { return random(8, "abc") + "\r" })},
		{"random", lines(func(int) string { return fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64()) })},
		{"equal", lines(func(int) string { return "the same again" })},
		{"few distinct", lines(func(int) string { return fmt.Sprintf("value %d", r.IntN(100)) })},
		{"repeats that differ late", lines(func(int) string { return strings.Repeat("value 12", 1+r.IntN(2)) + random(1, "ab") })},
		{"sorted", sorted},
		{"reversed", reversed(sorted)},
		{"nearly sorted", lines(func(i int) string { return fmt.Sprintf("line %09d", i+r.IntN(5)) })},
		{"organ pipe", sorted[:len(sorted)/30*15] + reversed(sorted[:len(sorted)/30*15])},
		{"common prefix", lines(func(int) string { return strings.Repeat("p", 100) + fmt.Sprint(r.Uint32()) })},
		{"longer prefix than marks keep", lines(func(int) string { return strings.Repeat("p", 700) + fmt.Sprint(r.Uint32()%1000) })},
		{"bytes 7 to 9", lines(func(int) string { return "1234567" + random(3, "ab") + "tail" })},
		{"bytes 15 to 17", lines(func(int) string { return "123456781234567" + random(3, "ab") + "tail" })},
		{"each a prefix of the next", lines(func(i int) string { return strings.Repeat("x", i%1500) })},
		{"prefixes with tails", lines(func(i int) string { return strings.Repeat("x", i%60) + random(1+i%3, "axz") + random(12, "\x00x") })},
		{"most in one bucket", lines(func(i int) string {
			if i%100 == 0 {
				return random(20, "xyz")
			}
			return "a" + random(10, "abcdefgh")
		})},
		{"Zipf", lines(func(int) string { return fmt.Sprintf("word%d", zipf.Uint64()) })},
		{"all ones and zeros", lines(func(i int) string { return strings.Repeat(string("\xff\x00"[i%2]), r.IntN(12)) })},
		{"long lines", lines(func(int) string { return random(3000, "ab") + random(9000, "abcdef") })},
		{"one long line", random(30, "ab") + "\n" + strings.Repeat("long", 2000) + "\n" + random(30, "ab") + "\n"},
	}
}

// splitLines returns lines without their ends.
func splitLines(text string) [][]byte {
	if text == "" {
		return nil
	}
	return bytes.Split([]byte(strings.TrimSuffix(text, "\n")), []byte("\n"))
}

func joinLines(records [][]byte) string {
	var b strings.Builder
	for _, r := range records {
		b.Write(r)
		b.WriteByte('\n')
	}
	return b.String()
}

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

// withKeys are options without a key and with one.
func withKeys() map[string]*extsort.Options {
	return map[string]*extsort.Options{
		"no key": {},
		"key":    {Key: func(_, r []byte) []byte { return r[:len(r)/2] }},
	}
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

func sortString(o *extsort.Options, text string) (string, error) {
	var out bytes.Buffer
	err := extsort.Sort(context.Background(), &out, o, strings.NewReader(text))
	return out.String(), err
}

// calls are all that read.
var calls = map[string]func(ctx context.Context, o *extsort.Options, src ...io.Reader) error{
	"Sort": func(ctx context.Context, o *extsort.Options, src ...io.Reader) error {
		return extsort.Sort(ctx, io.Discard, o, src...)
	},
	"Merge": func(ctx context.Context, o *extsort.Options, src ...io.Reader) error {
		return extsort.Merge(ctx, io.Discard, o, src...)
	},
	"Sorted": func(ctx context.Context, o *extsort.Options, src ...io.Reader) error {
		for _, err := range extsort.Sorted(ctx, o, src...) {
			if err != nil {
				return err
			}
		}
		return nil
	},
	"Check": func(ctx context.Context, o *extsort.Options, src ...io.Reader) error {
		return extsort.Check(ctx, o, src[0])
	},
}

// onEachCall calls f for each call, without a key and with one.
func onEachCall(t *testing.T, f func(t *testing.T, o *extsort.Options, call func(context.Context, *extsort.Options, ...io.Reader) error)) {
	for name, call := range calls {
		for key, o := range withKeys() {
			t.Run(name+"/"+key, func(t *testing.T) { f(t, o, call) })
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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// noFiles fails if there is a file in dir, or an open one without a name.
func noFiles(t *testing.T, dir string) {
	t.Helper()
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%s has %v", dir, left)
	}
	for name := range openIn(dir) {
		t.Errorf("%s is open", name)
	}
}

// openIn returns the names in /proc of the open files in dir.
func openIn(dir string) iter.Seq[string] {
	return func(yield func(string) bool) {
		const open = "/proc/self/fd"
		descriptors, _ := os.ReadDir(open)
		for _, d := range descriptors {
			name := filepath.Join(open, d.Name())
			if to, _ := os.Readlink(name); strings.HasPrefix(to, dir) && !yield(name) {
				return
			}
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
