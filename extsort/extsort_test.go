package extsort_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/freehold-go/freehold/extsort"
)

// sortedBy is the model: a stable sort, then what the options say.
func sortedBy(records [][]byte, o *extsort.Options) [][]byte {
	key := func(r []byte) []byte {
		if o.Key == nil {
			return r
		}
		k := slices.Clone(o.Key(nil, r))
		if o.ThenRecord {
			k = append(k, r...)
		}
		return k
	}
	records = slices.Clone(records)
	slices.SortStableFunc(records, func(a, b []byte) int {
		if o.Reverse {
			a, b = b, a
		}
		return bytes.Compare(key(a), key(b))
	})
	if o.Unique {
		records = slices.CompactFunc(records, func(a, b []byte) bool { return bytes.Equal(key(a), key(b)) })
	}
	return records
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
	{"key unique", extsort.Options{Key: thirdByte, Unique: true}},
	{"key part of the record", extsort.Options{Key: func(_, r []byte) []byte { return r[len(r)/2:] }}},
}

// sizes are of inputs: within the memory, a few runs, and many. The merge of the
// last takes two passes.
func sizes() []int {
	if testing.Short() {
		return []int{50 << 10, 400 << 10}
	}
	return []int{50 << 10, 150 << 10, 600 << 10, 4 << 20}
}

func TestSort(t *testing.T) {
	for _, size := range sizes() {
		for _, in := range inputs(size) {
			for i, v := range variants {
				for _, parallel := range []int{1, 2, 8} {
					if testing.Short() && (i+parallel)%3 != 0 {
						continue
					}
					if size >= 4<<20 && (len(in.text) < size || parallel == 1 || i%3 != 0) {
						continue
					}
					// Some combinations of each are enough where time is short.
					t.Run(fmt.Sprintf("%s/%d/%s/%d", in.name, size, v.name, parallel), func(t *testing.T) {
						o := v.o
						o.Memory = extsort.MinMemory * parallel
						o.Parallel = parallel
						o.TempDirs = []string{t.TempDir()}
						var out bytes.Buffer
						if err := extsort.Sort(context.Background(), &out, &o, strings.NewReader(in.text)); err != nil {
							t.Fatal(err)
						}
						same(t, out.String(), joinLines(sortedBy(splitLines(in.text), &o)))
					})
				}
			}
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

var _ = io.EOF
var _ = iotest.ErrReader
