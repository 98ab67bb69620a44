// Plan: the benchmarks, their peers, and the number of samples.

package bench

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/freehold-go/freehold/lab/bench/measure"
)

// A group is the benchmarks of one function, such as BenchmarkPair.
type group struct {
	name, what string
	pkg        string // that has it
	rounds     int    // takes no more samples than this; 0 means as many as asked
	longer     int    // times the usual time, for what is slow; 0 means a whole load, whatever its time
}

// groups is in the order of the report.
var groups = []group{
	{"Pair", "malloc, touch the first byte, free", "alloc", 0, 1},
	{"Mixed", "10,000 live blocks of mixed sizes a goroutine: free one and malloc one at random", "alloc", 0, 1},
	{"Handover", "one goroutine mallocs, another frees; a block", "alloc", 0, 1},
	{"Scatter", "malloc 10,000 blocks a goroutine, touch the first bytes, free them in a random order; a block", "alloc", 0, 1},
	{"Larson", "a server: goroutines replace random ones of 5,000 blocks, and leave them to each other", "alloc", 0, 1},
	{"Xmalloc", "one goroutine mallocs, another frees, in batches of 4,096 that wait on a stack; a block", "alloc", 0, 1},
	{"Mstress", "random ones of 4,000 blocks a goroutine are replaced or exchanged with a common table", "alloc", 0, 1},
	{"Zeroed", "calloc, touch the first byte, free", "alloc", 0, 1},
	{"Bump", "blocks that end all at once, after each 1 MiB; a block", "alloc", 0, 1},
	{"BumpNew", "the same, a zeroed object by the typed call", "alloc", 0, 1},
	{"Reset", "the end of all blocks of an arena of 1 GiB", "alloc", 0, 1},
	{"Grow", "one block from 1 MiB to 1 GiB by doubling", "alloc", 3, 0},
	{"Memory", "live blocks, all bytes written", "alloc", 1, 0},
	{"MemoryChurn", "the same, each replaced twice", "alloc", 1, 0},
	{"Peak", "the most memory of phases that rise and fall, for each byte of the most that is live", "alloc", 0, 0},
	{"Replay", "the calls of recorded programs; a call, and the most memory for each byte of the most that is live", "alloc", 0, 5},
	{"Huge", "100 million live blocks", "alloc", 1, 0},
	{"Sort", "10 million records sorted", "sorts", 3, 0},
	{"Append", "100 million records of 16 B appended; a record", "sorts", 3, 0},
	{"Buffer", "a buffer that grows from 1 MiB, all of it written to: the calls that grow", "sorts", 3, 0},
	{"Lines", "1 GB of lines sorted with -S 200M, from file to file", "sorts", 3, 0},
	{"Numbers", "10 million entries of uint64 to uint64", "keyed", 3, 5},
	{"Strings", "10 million entries of strings of 16 B, copied, to 16 B", "keyed", 3, 5},
	{"Texts", "10 million entries of strings of 16 B to strings of 16 B, both copied; the value is read", "keyed", 3, 5},
	{"Shared", "two goroutines: 90% get, of which half are there, 5% put, 5% delete", "keyed", 3, 5},
	{"SharedBytes", "90% get, 10% put, of 500,000 entries of strings of 16 B to 128 B", "keyed", 3, 5},
	{"Ordered", "10 million entries of uint64 to uint64 in order; an entry", "keyed", 3, 5},
	{"Caches", "caches of a million entries of 100 to 1,000 B and of 10 million of 100 B", "keyed", 3, 5},
	{"Frozen", "a million entries of 16 B to 100 B in a file; an entry, to open the file, and what two processes hold", "keyed", 3, 5},
	{"Intern", "5 million strings of 16 B interned; a string", "keyed", 3, 5},
}

// onlyFull begins the names of what runs only if it is named, or with --full.
var onlyFull = []string{"Huge/", "Lines/", "Strings/op=collect-full", "Buffer/to=full"}

// A peer is measured by a benchmark of a program.
type peer struct {
	name string
	*program
}

// A benchmark is one column of a table.
type benchmark struct {
	name string // without the peer: Pair/size=64/goroutines=1
	*group
	peers []peer
}

// alike reports whether one of two names begins the other, in capitals or not.
func alike(a, b string) bool {
	n := min(len(a), len(b))
	return strings.EqualFold(a[:n], b[:n])
}

// A selection is the benchmarks and peers that the command line names.
type selection struct {
	loads, rows []string // how names begin, in capitals or not; none means all
	full        bool
}

// check returns an error if no benchmark can have one of the names.
func (s selection) check() error {
	for _, name := range s.loads {
		if !slices.ContainsFunc(groups, func(g group) bool { return alike(g.name+"/", name) }) {
			return fmt.Errorf("no load begins with %q; --list names them", name)
		}
	}
	return nil
}

// needs reports whether a program may have a selected benchmark.
func (s selection) needs(p *program) bool {
	if len(s.rows) > 0 && p.pkg == "alloc" && !slices.ContainsFunc(s.rows, func(row string) bool { return begins(p.name, row) }) {
		return p.name == catalogue
	}
	return len(s.loads) == 0 || slices.ContainsFunc(s.loads, func(name string) bool {
		i := slices.IndexFunc(groups, func(g group) bool { return alike(g.name+"/", name) })
		return groups[i].pkg == p.pkg && (p.name == catalogue || p.runs == nil ||
			slices.ContainsFunc(p.runs, func(run string) bool { return alike(run, name) }))
	})
}

// wants reports whether a benchmark of a peer is asked for.
func (s selection) wants(name, peer string) bool {
	if len(s.rows) > 0 && !slices.ContainsFunc(s.rows, func(row string) bool { return begins(peer, row) }) {
		return false
	}
	if len(s.loads) == 0 {
		return s.full || !slices.ContainsFunc(onlyFull, func(full string) bool { return strings.HasPrefix(name, full) })
	}
	return slices.ContainsFunc(s.loads, func(load string) bool { return begins(name, load) })
}

// begins reports whether name begins with a prefix, in capitals or not.
func begins(name, prefix string) bool { return len(name) >= len(prefix) && alike(name, prefix) }

// catalogue is the program that names the benchmarks that those in C have too.
const catalogue = "freehold"

// benchmarksOf returns the selected benchmarks of the programs, in the order of the report. The
// peers are in the order of the programs.
func (s selection) benchmarksOf(all []*program) ([]*benchmark, error) {
	var found []*benchmark
	var common []string // names that programs in C may have
	add := func(name, who string, of *program) error {
		base, _, _ := strings.Cut(name, "/")
		g := slices.IndexFunc(groups, func(g group) bool { return g.name == base && g.pkg == of.pkg })
		if g < 0 {
			return fmt.Errorf("program %s has a benchmark %s, which is of no group", of.name, name)
		}
		if !of.runsBenchmark(name) || !s.wants(name, who) {
			return nil
		}
		i := slices.IndexFunc(found, func(b *benchmark) bool { return b.name == name })
		if i < 0 {
			i = len(found)
			found = append(found, &benchmark{name: name, group: &groups[g]})
		}
		found[i].peers = append(found[i].peers, peer{who, of})
		return nil
	}
	for _, p := range all {
		if p.skip != "" {
			continue
		}
		if p.native {
			for _, name := range common {
				if err := add(name, p.name, p); err != nil {
					return nil, err
				}
			}
		}
		for _, full := range p.names {
			name, who, _ := strings.Cut(full, "/peer=")
			if p.tree != "" {
				if !strings.HasPrefix(who, "freehold") {
					continue
				}
				who += beforeSuffix
			}
			if p.pkg == "alloc" && who != p.name {
				return nil, fmt.Errorf("program %s has a benchmark %s", p.name, full)
			}
			if p.name == catalogue {
				common = append(common, name)
			}
			if err := add(name, who, p); err != nil {
				return nil, err
			}
		}
	}
	for _, row := range s.rows {
		if !slices.ContainsFunc(found, func(b *benchmark) bool {
			return slices.ContainsFunc(b.peers, func(p peer) bool { return begins(p.name, row) })
		}) {
			return nil, fmt.Errorf("no row of these loads begins with %q; --list names them", row)
		}
	}
	slices.SortStableFunc(found, func(a, b *benchmark) int {
		return slices.IndexFunc(groups, func(g group) bool { return g.name == a.group.name }) -
			slices.IndexFunc(groups, func(g group) bool { return g.name == b.group.name })
	})
	return found, nil
}

// A scale is how much of each load a run does, and for how long.
type scale struct {
	name   string // for the programs
	rounds int
	time   time.Duration // of a sample
}

// args returns what p is called with for a sample of b.
func (s scale) args(b *benchmark, p peer) []string {
	if p.native {
		return append(s.nativeArgs(b), "-warm", milliseconds(s.size().Warm), "-run", milliseconds(s.time*time.Duration(b.longer)))
	}
	took := "1x"
	if b.longer > 0 && !b.once() {
		took = (s.time * time.Duration(b.longer)).String()
	}
	return s.goArgs(b, p, took)
}

// once reports whether b is measured once in each process: resident memory cannot grow again in
// pages that an earlier run has left.
func (b *benchmark) once() bool { return strings.HasSuffix(b.name, "op=held") }

// argsOf returns the same for a number of chunks of operations, after which the sum of them is
// told.
func (s scale) argsOf(b *benchmark, p peer, chunks, chunk int) []string {
	if p.native {
		return append(s.nativeArgs(b), "-ops", strconv.Itoa(chunks*chunk))
	}
	return append(s.goArgs(b, p, strconv.Itoa(chunks)+"x"), fmt.Sprintf("-chunk=%d", chunk))
}

func (s scale) goArgs(b *benchmark, p peer, took string) []string {
	parts := strings.Split("Benchmark"+b.name+"/peer="+strings.TrimSuffix(p.name, beforeSuffix), "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	dir := filepath.Dir(p.path)
	args := []string{"-test.run=^$", "-test.bench=" + strings.Join(parts, "/"), "-test.benchtime=" + took, "-scale=" + s.name}
	if p.pkg == "sorts" {
		args = append(args, "-dir="+dir, "-command="+filepath.Join(dir, exe(commandName)))
	}
	return args
}

func (s scale) nativeArgs(b *benchmark) []string {
	mean := 0
	for part := range strings.SplitSeq(b.name, "/") {
		var from, to int
		switch n, _ := fmt.Sscanf(part, "size=%d-%d", &from, &to); n {
		case 1:
			mean = from
		case 2:
			mean = (from + to) / 2
		}
	}
	return []string{"-bench", b.name, "-blocks", strconv.Itoa(s.size().Blocks(b.name, mean)), "-top", strconv.Itoa(s.size().Top)}
}

func (s scale) size() measure.Scale {
	size, _ := measure.ScaleOf(s.name)
	return size
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
