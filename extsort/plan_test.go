package extsort

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
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
			if int64(len(r.mem)) > maxRegionBytes {
				t.Errorf("a region of %d bytes, with offsets of 32 bits", len(r.mem))
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
		if err := Sort(context.Background(), io.Discard, o, src); err != nil {
			t.Fatal(err)
		}
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
