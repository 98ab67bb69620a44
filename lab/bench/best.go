// Best: one line for each load where the best of all allocators or maps was better than freehold,
// or close to it.

package bench

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// A rival is a load with the row of freehold's that is compared.
type rival struct {
	what, benchmark, unit string
	own                   string
	than                  string // the peer that it is compared with, or "" for the best
}

const (
	cpuUnit      = "cpu-ns/op"
	beforeSuffix = "-before"
)

// rivals counts processor time, in which no other program's turn on the processor is.
var rivals = slices.Concat(
	allocRivals("pair of 64 B", "Pair/size=64", 1, 2),
	allocRivals("pair of 64 KiB", "Pair/size=65536", 1, 2),
	allocRivals("mixed, 16 to 1,039 B", "Mixed/size=16-1039", 1, 2),
	allocRivals("mixed, 16 to 4,096 B", "Mixed/size=16-4096", 1, 2),
	allocRivals("scatter, 64 B", "Scatter/size=64", 1, 2),
	allocRivals("larson", "Larson/size=8-1000", 1, 2),
	[]rival{
		{"xmalloc, 64 B, on two", "Xmalloc/size=64", cpuUnit, "freehold", ""},
		{"xmalloc, 8 to 2,048 B, on two", "Xmalloc/size=8-2048", cpuUnit, "freehold", ""},
	},
	allocRivals("mstress", "Mstress/size=8-1024", 1, 2),
	[]rival{
		{"resident at the peak / live, 8 MiB", "Peak/live=8MiB/goroutines=2", "peak/live", "freehold", ""},
		{"resident at the peak / live, 32 MiB", "Peak/live=32MiB/goroutines=2", "peak/live", "freehold", ""},
		{"resident at the peak / live, jq", "Replay/trace=jq", "peak/live", "freehold", ""},
		{"a call of jq", "Replay/trace=jq", cpuUnit, "freehold", ""},
		{"resident at the peak / live, postgres", "Replay/trace=postgres", "peak/live", "freehold", ""},
		{"a call of postgres", "Replay/trace=postgres", cpuUnit, "freehold", ""},
		{"pair of 64 KiB while sampled", "Pair/size=65536/goroutines=1", cpuUnit, "freehold-sampled", "freehold"},
		{"pair of 1 MiB while sampled", "Pair/size=1048576/goroutines=1", cpuUnit, "freehold-sampled", "freehold"},
		{"arena, 64 B, beside an inlined bump", "Bump/size=64/goroutines=1", cpuUnit, "freehold-arena", "loop-go"},
	},
	mapRivals("map of 1 M", "entries=1M/op=", "hit", "miss", "insert", "insert-reserved", "delete", "churn", "scan"),
	[]rival{{"map of 1 M: bytes an entry", "Numbers/entries=1M/op=held", "resident-B/entry", "freehold-map", ""}},
	mapRivals("map of 100,000", "entries=100k/op=", "hit", "miss"),
	[]rival{
		{"map that grows to 3 M: p99.99", "Numbers/entries=3M/op=worst", "p99.99-ns", "freehold-map", ""},
		{"texts to texts, 2 M: hit", "Texts/entries=2M/op=hit", cpuUnit, "freehold-map", ""},
		{"shared map of 1 M on two, 50% gets", "Shared/op=large/get=50", cpuUnit, "freehold-sharded", ""},
		{"B-tree of 1 M: get", "Ordered/entries=1M/op=get", cpuUnit, "freehold-btree", ""},
	},
)

func allocRivals(what, benchmark string, goroutines ...int) (all []rival) {
	for _, n := range goroutines {
		all = append(all, rival{fmt.Sprintf("%s, on %s", what, []string{"", "one", "two"}[n]),
			fmt.Sprintf("%s/goroutines=%d", benchmark, n), cpuUnit, "freehold", ""})
	}
	return all
}

func mapRivals(what, at string, ops ...string) (all []rival) {
	for _, op := range ops {
		all = append(all, rival{what + ": " + op, "Numbers/" + at + op, cpuUnit, "freehold-map", ""})
	}
	return all
}

// chosen returns the rivals that loads name, all of them if that is empty.
func chosen(loads []string) []rival {
	return slices.DeleteFunc(slices.Clone(rivals), func(v rival) bool { return !(selection{loads: loads, full: true}).wants(v.benchmark, "") })
}

// runs reports whether v compares a peer: freehold's row, the same before, or another's. C's malloc
// through cgo and what only wraps Go's heap or its maps is never the best.
func (v rival) runs(p peer) bool {
	switch {
	case strings.TrimSuffix(p.name, beforeSuffix) == v.own, p.name == v.than:
		return true
	case v.than != "" || p.loop:
		return false
	}
	return !slices.ContainsFunc([]string{"freehold", "cgo-", "modernc", "ristretto", "sync-", "go-map-rwmutex"},
		func(prefix string) bool { return strings.HasPrefix(p.name, prefix) })
}

// mayRun reports whether one of some rivals may compare a peer of p.
func (p *program) mayRun(rivals []rival) bool {
	return p.pkg != "alloc" || slices.ContainsFunc(rivals, func(v rival) bool { return v.runs(peer{p.name, p}) })
}

// only leaves the benchmarks and peers of some rivals.
func only(all []*benchmark, rivals []rival) []*benchmark {
	return slices.DeleteFunc(all, func(b *benchmark) bool {
		b.peers = slices.DeleteFunc(b.peers, func(p peer) bool {
			return !slices.ContainsFunc(rivals, func(v rival) bool { return v.benchmark == b.name && v.runs(p) })
		})
		return len(b.peers) == 0
	})
}

// best returns the cells of freehold's row, of the same before, which may be nil, and of the best
// other peer.
func (v rival) best(r *run) (own, before, best *cell, who peer) {
	for _, b := range r.benchmarks {
		for _, p := range b.peers {
			c := r.cell(b, p)
			if b.name != v.benchmark || !v.runs(p) || !c.measured() || len(c.figures(v.unit).values) == 0 {
				continue
			}
			switch {
			case p.name == v.own:
				own = c
			case p.name == v.own+beforeSuffix:
				before = c
			case best == nil || c.figures(v.unit).median < best.figures(v.unit).median:
				best, who = c, p
			}
		}
	}
	return own, before, best, who
}

// label names a peer with its version, where that is known.
func (p peer) label() string {
	switch {
	case p.allocator == "":
		return p.name
	case p.pkg == "alloc":
		return p.allocator
	}
	return p.name + ", " + p.allocator
}

// writeBest writes a table of some rivals.
func writeBest(w io.Writer, r *run, rivals []rival) {
	text := func(unit string, c, than *cell) string {
		if c == nil || than == nil {
			return "-"
		}
		s := ratio(unit, c, than)
		return fmt.Sprintf("%.2f (%.2f to %.2f)", s.median, s.least(), s.most())
	}
	told := func(unit string, c *cell) string {
		if c == nil {
			return "-"
		}
		return figure(unit, c.figures(unit).median)
	}
	fmt.Fprintf(w, "\nMedians, and ratios with their least and most. %s is processor time of all threads.\n\n", cpuUnit)
	fmt.Fprintln(w, "| load | unit | best peer | its figure | freehold | of the best | before | of before |\n|---|---|---|---|---|---|---|---|")
	for _, v := range rivals {
		own, before, best, who := v.best(r)
		row := []string{v.what, v.unit, "-", told(v.unit, best), told(v.unit, own), text(v.unit, own, best), told(v.unit, before), text(v.unit, own, before)}
		if best != nil {
			row[2] = who.label()
		}
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
	}
}

// writeTransfers writes what internal/small prints of simulated processors, of the tree in dir.
func writeTransfers(ctx context.Context, w io.Writer, which, dir string) {
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-tags", "freehold_seams", "-run", "^TestTransfers$", "-v", module+"/internal/small")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	fmt.Fprintf(w, "\nTransfers of cache lines a pair on 2 to 64 processors, which are SIMULATED%s; the columns after them say of what, at 64.\n\n", which)
	if err != nil {
		fmt.Fprintf(w, "No figures: %v\n", err)
		return
	}
	rows := 0
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "| ") {
			fmt.Fprintln(w, line)
			if rows++; rows == 1 {
				fmt.Fprintln(w, strings.Repeat("|---", strings.Count(line, "|")-1)+"|")
			}
		} else if rows > 0 {
			return // the next table is of locks
		}
	}
}
