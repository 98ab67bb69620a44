package measure

import (
	"fmt"
	"strings"
	"time"
)

// A Scale is how much of each load a run does.
type Scale struct {
	Warm   time.Duration // before each sample
	Memory int           // bytes in blocks of mixed sizes
	Class  int           // bytes in blocks of one size
	Huge   int           // blocks
	Top    int           // bytes that realloc and a buffer grow to, and that Reset ends

	Records    int   // sorted; ten times as many are appended
	FullBuffer int   // bytes that a buffer grows to with --full
	LineBytes  int64 // of a file that is sorted
	SortMemory int64 // bytes for that

	Entries     int    // of maps
	Numbers     [3]int // of maps of numbers
	FullEntries int    // that are live in a collection with --full
	Shared      [2]int // entries of a map that goroutines share
}

var scales = map[string]Scale{
	"usual": usual,
	"full": func() Scale {
		s := usual
		s.LineBytes, s.SortMemory = 5_000_000_000, 1<<30
		return s
	}(),
	"quick": {
		Warm:   2 * time.Millisecond,
		Memory: 16 << 20, Class: 4 << 20, Huge: 100_000, Top: 16 << 20,
		Records: 20_000, FullBuffer: 32 << 20, LineBytes: 4_000_000, SortMemory: 1 << 20,
		Entries: 20_000, Numbers: [3]int{20_000, 2_000, 1_000}, FullEntries: 50_000, Shared: [2]int{1_000, 10_000},
	},
}

var usual = Scale{
	Warm:   20 * time.Millisecond,
	Memory: 2 << 30, Class: 256 << 20, Huge: 100_000_000, Top: 1 << 30,
	Records: 10_000_000, FullBuffer: 8 << 30, LineBytes: 1_000_000_000, SortMemory: 200 << 20,
	Entries: 10_000_000, Numbers: [3]int{10_000_000, 1_000_000, 100_000}, FullEntries: 50_000_000, Shared: [2]int{100_000, 1_000_000},
}

// ScaleOf returns the scale of a name: usual, full or quick.
func ScaleOf(name string) (Scale, error) {
	s, ok := scales[name]
	if !ok {
		return s, fmt.Errorf("no scale %q", name)
	}
	return s, nil
}

// Blocks returns how many blocks a benchmark has live at once, where their mean size is given.
func (s Scale) Blocks(benchmark string, mean int) int {
	switch {
	case strings.HasPrefix(benchmark, "Huge"):
		return s.Huge
	case strings.HasPrefix(benchmark, "MemoryChurn"):
		return s.Class / mean
	case strings.HasPrefix(benchmark, "Memory/size=16-1024"):
		return s.Memory / mean
	case strings.HasPrefix(benchmark, "Memory"):
		return s.Class / mean
	}
	return 10_000
}
