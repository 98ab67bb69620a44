// Load: what is measured. The loops are in worker/ and native/native.c.

package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// A load is one column of one table.
type load struct {
	key    string // what --loads names: pair/64
	bench  string // its name in Go's benchmark format
	table  string // the title of its table
	column string // its heading there
	unit   unit
	args   []string
	base   string // key of the load that this one is also compared with
	shared bool   // several goroutines use the allocator at once
	rounds int    // takes no more samples than this; 0 means as many as asked
	heavy  bool   // takes gigabytes, so only rows that say something new
	huge   bool   // only when named or with --full

	special bool // only rows that name it run it

	of   string // key of the load that this one is another figure of; nothing runs for it
	disk bool   // the kernel's writing to the disk looks like other programs
}

// A unit says which of a sample's figures counts, and how it reads.
type unit int

const (
	nanoseconds unit = iota // per operation
	whole                   // milliseconds for the whole load
	resident                // resident bytes per requested byte
	overhead                // resident bytes beyond the requested, per block
	mallocs                 // Go heap allocations per operation
	grown                   // MB resident beyond those before the load
	peak                    // MB resident at most
)

func (u unit) of(s sample) float64 {
	switch u {
	case whole:
		return s.NS / 1e6
	case resident:
		return float64(s.Resident) / float64(s.Requested)
	case overhead:
		return (float64(s.Resident) - float64(s.Requested)) / float64(s.Ops)
	case mallocs:
		return s.Mallocs
	case grown:
		return float64(s.Resident) / 1e6
	case peak:
		return float64(s.Peak) / 1e6
	}
	return s.NS
}

// timed reports whether other programs can change a figure.
func (u unit) timed() bool { return u == nanoseconds || u == whole }

// String is the unit's name in Go's benchmark format.
func (u unit) String() string {
	return [...]string{"ns/op", "ms", "resident/requested", "overhead-B/block", "mallocs/op", "resident-MB", "peak-MB"}[u]
}

func (u unit) format(v float64) string {
	switch {
	case u == resident:
		return fmt.Sprintf("%.3f", v)
	case u == mallocs:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case u == whole && v < 10:
		return fmt.Sprintf("%.3f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return humanize.Comma(int64(v + 0.5))
}

// scale is how much of each load a run does.
type scale struct {
	warm, run time.Duration // per sample
	memory    int           // bytes in blocks of mixed sizes
	class     int           // bytes in blocks of one size
	huge      int           // blocks
	top       int           // bytes that realloc grows to, and that Reset ends
	list      int           // nodes
	settle    time.Duration // between a burst and its count; a heap's decay is 1 s

	records    int    // sorted
	appended   int    // records
	grown      [2]int // bytes that a buffer grows to, as usual and with --full
	lines      int    // bytes
	sortMemory int    // bytes for a sort of lines

	entries   int    // of maps
	collected int    // entries that are live in a collection, with --full
	shared    [2]int // entries of a map that goroutines share
}

var (
	fullScale = scale{
		20 * time.Millisecond, 60 * time.Millisecond, 2 << 30, 256 << 20, 100_000_000, 1 << 30, 2_000_000, 3 * time.Second,
		10_000_000, 100_000_000, [2]int{1 << 30, 8 << 30}, 1_000_000_000, 200 << 20,
		10_000_000, 50_000_000, [2]int{100_000, 1_000_000},
	}
	quickScale = scale{
		2 * time.Millisecond, 4 * time.Millisecond, 16 << 20, 4 << 20, 100_000, 16 << 20, 20_000, 20 * time.Millisecond,
		20_000, 100_000, [2]int{16 << 20, 32 << 20}, 4_000_000, 1 << 20,
		20_000, 50_000, [2]int{1_000, 10_000},
	}
)

// resetBlock is the size of the blocks that a Reset ends, in bytes.
const resetBlock = 64 << 10

// loads returns every load, in the order of the report.
func loads(s scale) []load {
	var all []load
	timed := func(l load, args ...string) {
		l.args = append(args, "-warm", itoa(s.warm.Milliseconds()), "-run", itoa(s.run.Milliseconds()))
		all = append(all, l)
	}

	for threads := 1; threads <= 2; threads++ {
		for _, size := range []int{16, 64, 256, 1 << 10, 4 << 10, 64 << 10, 1 << 20} {
			l := load{
				key:    fmt.Sprintf("pair/%d", size),
				bench:  fmt.Sprintf("Pair/size=%d/goroutines=%d", size, threads),
				table:  "malloc + touch + free, ns a pair",
				column: bytesText(size),
			}
			if threads == 2 {
				l.base, l.key = l.key, fmt.Sprintf("pair2/%d", size)
				l.table += ", two goroutines at once"
				l.shared = true
			}
			timed(l, "-load", "pair", "-min", itoa(size), "-threads", itoa(threads))
		}
	}
	for _, sizes := range [][2]int{{16, 1039}, {16, 4096}} {
		for threads := 1; threads <= 2; threads++ {
			l := load{
				key:    fmt.Sprintf("mixed/%d-%d", sizes[0], sizes[1]),
				bench:  fmt.Sprintf("Mixed/size=%d-%d/goroutines=%d", sizes[0], sizes[1], threads),
				table:  "10,000 live blocks of mixed sizes a goroutine: free one and malloc one at random, ns",
				column: fmt.Sprintf("%d..%d B", sizes[0], sizes[1]),
			}
			if threads == 2 {
				l.base, l.key = l.key, strings.Replace(l.key, "mixed", "mixed2", 1)
				l.column += ", two"
				l.shared = true
			}
			timed(l, "-load", "mixed", "-min", itoa(sizes[0]), "-max", itoa(sizes[1]), "-threads", itoa(threads))
		}
	}
	timed(load{
		key:    "scatter/64",
		bench:  "Scatter/size=64",
		table:  "10,000 blocks, all freed in random order, ns a block",
		column: "64 B",
	}, "-load", "scatter", "-min", "64")
	for _, h := range []struct {
		name, column   string
		min, max, read int
	}{
		{"64", "64 B", 64, 64, 0},
		{"16-1039", "16..1039 B", 16, 1039, 0},
		{"64-read", "64 B, read there", 64, 64, 1},
	} {
		timed(load{
			key:    "handover/" + h.name,
			bench:  "Handover/size=" + h.name,
			table:  "one goroutine mallocs, another frees, ns a block",
			column: h.column,
			shared: true,
		}, "-load", "handover", "-min", itoa(h.min), "-max", itoa(h.max), "-read", itoa(h.read))
	}
	for _, size := range []int{64, 1 << 10, 4 << 10, 64 << 10} {
		timed(load{
			key:    fmt.Sprintf("zeroed/%d", size),
			bench:  fmt.Sprintf("Zeroed/size=%d", size),
			table:  "calloc + touch + free, ns a pair",
			column: bytesText(size),
		}, "-load", "zeroed", "-min", itoa(size))
	}

	for _, l := range []load{
		{key: "bump/64", column: "64 B", args: []string{"-load", "bump"}},
		{key: "bump/64-new", column: "new of 64 B", args: []string{"-load", "bumpnew"}},
	} {
		l.bench = "Bump/size=" + strings.TrimPrefix(l.key, "bump/")
		l.table = "blocks that end all at once, after each 1 MiB, ns a block"
		l.special = true
		timed(l, append(l.args, "-min", "64")...)
	}
	timed(load{
		key: "bump2/64", bench: "Bump/size=64/goroutines=2",
		table:  "blocks that end all at once, after each 1 MiB, ns a block, two goroutines on one arena",
		column: "64 B", base: "bump/64", special: true,
	}, "-load", "bump", "-min", "64", "-threads", "2")
	timed(load{
		key: "reset", bench: "Reset",
		table:  "the end of all blocks of an arena, ns",
		column: "of " + bytesText(s.top), special: true,
	}, "-load", "reset", "-min", itoa(resetBlock), "-slots", itoa(s.top/resetBlock))
	for threads := 1; threads <= 2; threads++ {
		l := load{
			key: "guard", bench: fmt.Sprintf("Guard/goroutines=%d", threads),
			table:  "a reader's guard: enter + leave, ns",
			column: "one goroutine", special: true,
		}
		if threads == 2 {
			l.key, l.base, l.column = "guard2", l.key, "two at once"
		}
		timed(l, "-load", "guard", "-threads", itoa(threads))
	}
	all = append(all, load{
		key: "list", bench: "List",
		table:  fmt.Sprintf("a linked list of %s zeroed nodes of 56 B, built and freed, ms", humanize.Comma(int64(s.list))),
		column: "over and over", unit: whole, rounds: 3, special: true,
		// Long enough for a collection or more on the Go heap.
		args: []string{"-load", "list", "-slots", itoa(s.list), "-warm", itoa(s.warm.Milliseconds()), "-run", itoa(8 * s.run.Milliseconds())},
	})

	for _, threads := range []int{1, 8} {
		for _, most := range []int{1 << 10, 64 << 10} {
			l := load{
				key:     fmt.Sprintf("lru/16-%d", most),
				bench:   fmt.Sprintf("LRU/size=16-%d/goroutines=%d", most, threads),
				table:   "a cache of 64 MiB at its limit, half of the lookups miss and evict, ns a lookup",
				column:  "16 B to " + bytesText(most),
				special: true,
			}
			if threads > 1 {
				l.key = strings.Replace(l.key, "lru", "lru8", 1)
				l.column += ", eight"
				l.shared = true
			}
			timed(l, "-load", "lru", "-min", "16", "-max", itoa(most), "-threads", itoa(threads))
		}
	}

	oneByte := load{
		table:   fmt.Sprintf("a zeroed block of %s of which one byte is used, over and over", bytesText(s.top/4)),
		rounds:  3,
		special: true,
		args:    []string{"-load", "onebyte", "-min", itoa(s.top / 4)},
	}
	oneByte.key, oneByte.bench, oneByte.column, oneByte.unit = "onebyte", "OneByte", "ms a round", whole
	all = append(all, oneByte)
	oneByte.key, oneByte.bench, oneByte.column, oneByte.unit = "onebyte-memory", "OneByteMemory", "MB resident", grown
	all = append(all, oneByte)
	for _, processors := range []int{2, 8, 64} {
		all = append(all, load{
			key:     fmt.Sprintf("burst/%d", processors),
			bench:   fmt.Sprintf("Burst/processors=%d", processors),
			table:   "after a burst on many processors one goroutine cycles blocks of 64 B: MB resident",
			column:  fmt.Sprintf("%d processors", processors),
			unit:    grown,
			rounds:  1,
			special: true,
			args: []string{"-load", "burst", "-threads", itoa(processors), "-slots", "2000",
				"-run", itoa(s.settle.Milliseconds())},
		})
	}

	for _, how := range []string{"grow", "copy"} {
		column := map[string]string{"grow": "realloc", "copy": "malloc + copy + free"}[how]
		all = append(all, load{
			key:    how,
			bench:  strings.ToUpper(how[:1]) + how[1:],
			table:  fmt.Sprintf("one block from 1 MiB to %s by doubling, ms for all steps", bytesText(s.top)),
			column: column, unit: whole, rounds: 3, heavy: true,
			args: []string{"-load", how, "-top", itoa(s.top)},
		})
	}

	live := func(l load, how string, min, max, bytes int) {
		l.unit, l.rounds, l.heavy = resident, 1, true
		l.args = []string{"-load", how, "-min", itoa(min), "-max", itoa(max), "-slots", itoa(bytes / ((min + max) / 2))}
		all = append(all, l)
	}
	memory := "resident bytes per requested byte"
	live(load{
		key: "memory/16-1024", bench: "Memory/size=16-1024", table: memory,
		column: fmt.Sprintf("%s of 16..1024 B", bytesText(s.memory)),
	}, "live", 16, 1024, s.memory)
	live(load{
		key: "churn/16-1024", bench: "MemoryChurn/size=16-1024", table: memory,
		column: fmt.Sprintf("%s, each replaced twice", bytesText(s.class)),
	}, "churn", 16, 1024, s.class)
	for _, size := range []int{16, 64, 256, 1 << 10, 4 << 10} {
		live(load{
			key: fmt.Sprintf("memory/%d", size), bench: fmt.Sprintf("Memory/size=%d", size), table: memory,
			column: bytesText(size),
		}, "live", size, size, s.class)
	}
	all = append(all, load{
		key: "huge", bench: "Huge/size=16-64",
		table:  fmt.Sprintf("%s live blocks of 16..64 B: bytes beyond the requested, per block", humanize.Comma(int64(s.huge))),
		column: "B a block", unit: overhead, rounds: 1, heavy: true, huge: true,
		args: []string{"-load", "live", "-min", "16", "-max", "64", "-slots", itoa(s.huge)},
	}, load{
		key: "mallocs", bench: "GoMallocs",
		table:  "Go heap allocations per round of freehold's calls",
		column: "mallocs", unit: mallocs, rounds: 1,
		args: []string{"-load", "mallocs"},
	})
	return slices.Concat(all, sortLoads(s), keyedLoads(s))
}

// selectLoads keeps the loads whose keys begin with one of the names, and those
// that they are another figure of. Without names it keeps all but the huge ones,
// and those too if full.
func selectLoads(all []load, names []string, full bool) ([]load, error) {
	for _, name := range names {
		if !slices.ContainsFunc(all, func(l load) bool { return strings.HasPrefix(l.key, name) }) {
			return nil, fmt.Errorf("no load begins with %q; --list names them", name)
		}
	}
	named := func(l load) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(l.key, name) })
	}
	return slices.DeleteFunc(slices.Clone(all), func(l load) bool {
		if len(names) == 0 {
			return l.huge && !full
		}
		return !named(l) && !slices.ContainsFunc(all, func(other load) bool { return other.of == l.key && named(other) })
	}), nil
}

func itoa[T int | int64](n T) string { return strconv.FormatInt(int64(n), 10) }

// bytesText writes 1024 as 1 KiB.
func bytesText(n int) string { return strings.Replace(humanize.IBytes(uint64(n)), ".0 ", " ", 1) }
