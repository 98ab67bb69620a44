package extsort

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"sort"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
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
