// The parts of a merge: windows, marks, splitters and cursors; the plan, and one full region.

package extsort

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/file/spill"
	"github.com/freehold-go/freehold/internal/keysort"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// Parallel is never exceeded, however much memory there is.
func TestPlanOfMuchMemory(t *testing.T) {
	if uint64(maxRegionBytes) < 1<<31 {
		t.Skip("a system without so much memory")
	}
	var much int64 = 3*maxRegionBytes + 1<<20
	mem, err := freehold.Pages().Alloc(int(much)&^(blockAlign-1), blockAlign)
	if err != nil {
		t.Skip(err)
	}
	defer freehold.Pages().Free(mem)
	for parallel := 1; parallel <= 4; parallel++ {
		p := newPlan(mem, parallel, false)
		if p.workers != parallel {
			t.Errorf("%d workers, want %d", p.workers, parallel)
		}
		for _, r := range p.regions {
			if int64(len(r)) > maxRegionBytes {
				t.Errorf("a region of %d bytes, with offsets of 32 bits", len(r))
			}
		}
	}
}

// How much input takes one more pass: what doc.go says.
func TestPasses(t *testing.T) {
	passes := func(memory, input int) int {
		merges := 0
		o := &Options{MemoryBytes: memory, Parallel: 2, TempDirs: []string{t.TempDir()}, Progress: func(p Progress) {
			if p.Phase == PhaseMerging && p.Done == 0 {
				merges++
			}
		}}
		line := strings.Repeat("some text of a line", 2) + "\n"
		src := io.LimitReader(repeated(line), int64(input/len(line)*len(line)))
		filetest.Must(t, Sort(context.Background(), io.Discard, o, src))
		return merges
	}
	tests := []struct{ memory, input, want int }{
		{1 << 20, 3 << 20, 0},
		{1 << 20, 8 << 20, 1},
		{2 << 20, 10 << 20, 0},
		{2 << 20, 20 << 20, 1},
	}
	if testing.Short() {
		tests = tests[:2]
	}
	for _, tt := range tests {
		if got := passes(tt.memory, tt.input); got != tt.want {
			t.Errorf("memory of %d bytes, input of %d: %d more passes, want %d", tt.memory, tt.input, got, tt.want)
		}
	}
}

type repeated string

func (r repeated) Read(b []byte) (n int, err error) {
	for n < len(b) {
		n += copy(b[n:], r)
	}
	return n, nil
}

// The last line of the input has no end, and gets one behind it, where the entries of a full region
// may not be.
func TestLastLineInAFullRegion(t *testing.T) {
	o := &Options{MemoryBytes: MinMemoryBytes, Parallel: 1}
	region := len(newPlan(make([]byte, o.MemoryBytes), 1, false).regions[0])
	const line = "aaaaaaaz\n" // the end of a word is where the end of the line would be written
	each := len(line) + keysort.EntryBytes
	rest := cmp.Or(region%each, each)
	var input bytes.Buffer
	for i := range (region - rest) / each {
		input.WriteString("aaaaaaa" + string(rune('b'+i*24/((region-rest)/each))) + "\n")
	}
	input.Truncate(input.Len() - len(line))
	input.WriteString(line + strings.Repeat("z", rest))
	var out strings.Builder
	if err := Sort(context.Background(), &out, o, &input); err != nil {
		t.Fatal(err)
	}
	if err := Check(context.Background(), nil, strings.NewReader(out.String())); err != nil {
		t.Error(err)
	}
}

// written returns a temporary file with text, padded to whole blocks.
func written(t *testing.T, text string) *spill.File {
	temp := freehold.Must(os.CreateTemp(t.TempDir(), ""))
	t.Cleanup(func() { temp.Close() })
	f := spill.New("extsort", temp, "temporary file")
	err := writing(make([]byte, 4*blockAlign), 0, f.WriteAt, func(w *writer) error {
		if err := w.add([]byte(text)); err != nil {
			return err
		}
		w.pad()
		return nil
	})
	filetest.Must(t, err)
	return f
}

// Each read is of whole blocks, whatever is left of the data before.
func TestReadsAreAligned(t *testing.T) {
	text := strings.Repeat(strings.Repeat("x", 1000)+"\n", 50)
	l := newLayout(&Options{})
	const from, to = 1001 * 7, 1001 * 43
	f := written(t, text)
	var r fileReader
	filetest.Must(t, r.open(&l, f, from, to, make([]byte, 3*blockAlign)))
	for n := 0; ; n++ {
		if r.at != to && r.at%blockAlign != 0 {
			t.Fatalf("the next read is at %d", r.at)
		}
		if end := cap(r.window) - cap(r.data) + len(r.data); r.at < to && end%blockAlign != 0 {
			t.Fatalf("the data ends at %d of the window", end)
		}
		if _, _, err := r.next(); err == io.EOF && n == 36 {
			return
		} else if err != nil {
			t.Fatalf("%v after %d records", err, n)
		}
	}
}

// A window holds the longest record for which there is one, wherever in a block the
// record begins.
func TestLeastWindows(t *testing.T) {
	l := newLayout(&Options{})
	p := newPlan(make([]byte, 1<<20), 1, false)
	for runs := 2; runs <= 10; runs++ {
		longest := sort.Search(p.maxStored, func(n int) bool { return buffersOf(p, 1, runs, n+1) == nil })
		b := buffersOf(p, 1, runs, longest)[0]
		text := strings.Repeat(strings.Repeat("x", longest-1)+"\n"+strings.Repeat("x", longest-2)+"\n", 5)
		var r fileReader
		err := r.open(&l, written(t, text), 0, int64(len(text)), b.window(0))
		for err == nil {
			_, _, err = r.next()
		}
		if err != io.EOF {
			t.Errorf("%d runs, with windows of %d bytes: %v", runs, b.each, err)
		}
	}
}

// A part that ends within a record is an error.
func TestTemporaryFilesThatHaveChanged(t *testing.T) {
	l := newLayout(&Options{})
	var r fileReader
	filetest.Must(t, r.open(&l, written(t, "a\nbcd\n"), 0, 4, make([]byte, 2*blockAlign)))
	if _, _, err := r.next(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.next(); err == nil || err == io.EOF {
		t.Errorf("%v, want an error", err)
	}
}

// An index of any size keeps whole keys of records in their order.
func TestMarksInLittleMemory(t *testing.T) {
	for size := 2 * markBytes; size < 40*markBytes; size += markBytes {
		x := &index{mem: make([]byte, size), stride: 1}
		for _, begin := range []int64{0, 1000} {
			x.begin(begin)
			for at := begin; at < begin+500; at++ {
				x.add(at, fmt.Appendf(nil, "%0*d", at%13+4, at))
			}
		}
		for n, m := range x.runs {
			for i := range m.len() {
				at := m.at(i)
				if want := fmt.Appendf(nil, "%0*d", at%13+4, at); !bytes.Equal(m.key(i), want) {
					t.Fatalf("%d bytes: mark %d has the key %q, want %q", size, i, m.key(i), want)
				}
			}
			if from := int64(n * 1000); m.len() > 0 && m.at(0) != from {
				t.Errorf("%d bytes: the first mark is at %d, not %d", size, m.at(0), from)
			}
		}
	}
}

// Splitters cut runs in memory into parts of about the wanted size. The last part takes the rest.
func TestSplitters(t *testing.T) {
	l := newLayout(&Options{})
	var runs []*run
	for i := range 2 {
		r := &run{}
		for n := range 1000 {
			r.entries = append(r.entries, keysort.Entry{At: uint32(len(r.text)), N: 6})
			r.text = fmt.Appendf(r.text, "%05d\n", 2*n+i)
		}
		r.bytes = int64(len(r.text))
		runs = append(runs, r)
	}
	all := splitters(&l, runs, 6*450)
	for i, s := range all {
		if at := freehold.Must(strconv.Atoi(string(s.key[:5]))); at < 450*(i+1) || at > 450*(i+1)+50 {
			t.Errorf("part %d begins at %d", i+1, at)
		}
	}
	if len(all) != 3 {
		t.Errorf("%d splitters", len(all))
	}
}

// A cursor compares a record with the one before it while that is in memory. A new
// window has records in the place of the old ones, equal to the first of the new ones
// here. All words are equal.
func TestCursorComparesWithWhatIsThere(t *testing.T) {
	const record = 16
	l := newLayout(&Options{Format: Fixed(record)})
	f := freehold.Must(spill.Create("extsort", t.TempDir()))
	defer f.Close()
	filetest.Must(t, f.EndDirect()) // for a window that is not aligned
	text := strings.Repeat("one word aaaaaaa", blockAlign/record) + strings.Repeat("one word bbbbbbb", blockAlign/record)
	if _, err := f.File.WriteAt([]byte(text), 0); err != nil {
		t.Fatal(err)
	}
	c := &cursor{l: &l}
	if err := c.open(&run{file: f}, 0, int64(len(text)), make([]byte, blockAlign)); err != nil {
		t.Fatal(err)
	}
	for i := range len(text) / record {
		filetest.Must(t, c.advance())
		if first := i*record%blockAlign == 0; c.repeat == first {
			t.Errorf("record %d: repeat is %t", i, c.repeat)
		}
	}
	if err := c.advance(); err != nil || !c.ended || c.repeat {
		t.Errorf("at the end: ended %t, repeat %t, %v", c.ended, c.repeat, err)
	}
}

// pieces is a reader with one result for each Read.
type pieces []string

func (p *pieces) Read(b []byte) (int, error) {
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	if n < len((*p)[0]) {
		return n, errors.New("a piece larger than a read")
	}
	*p = (*p)[1:]
	return n, nil
}

// The records of a stream are in memory until it reads more.
func TestMergeOfStreamsThatRepeat(t *testing.T) {
	a, b := strings.Repeat("one word a\n", 100), strings.Repeat("one word b\n", 100)
	var out bytes.Buffer
	if err := Merge(context.Background(), &out, &Options{}, &pieces{a, b}, &pieces{a, a}); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), a+a+a+b; got != want {
		t.Errorf("%.20q…", got)
	}
}
