// Counts: instructions, memory references and cache misses of an operation, by cachegrind of
// valgrind. They do not depend on other programs.

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// countLoads are counted where no others are named.
var countLoads = []string{
	"pair/size=64/goroutines=1", "pair/size=65536/goroutines=1", "pair/size=1048576/goroutines=1",
	"mixed/size=16-1039/goroutines=1", "mixed/size=16-4096/goroutines=1", "scatter/size=64/goroutines=1",
	"bump/size=64/goroutines=1", "numbers/entries=100k/op=hit", "numbers/entries=100k/op=miss",
	"ordered/entries=1M/op=get",
}

// The caches are the same on every machine: 32 KiB and 1 MiB.
var cachegrind = []string{"--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null",
	"--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64"}

// counted finds the totals of cachegrind.
var counted = regexp.MustCompile(`== (?:I +refs|D +refs|D1 +misses|LLd misses): +([\d,]+)`)

// counts are instructions, memory references, and misses of the first and of the last cache.
type counts [4]float64

// countsOf returns the totals that cachegrind printed.
func countsOf(out []byte) (c counts, err error) {
	found := counted.FindAllSubmatch(out, -1)
	if len(found) != len(c) {
		return c, errors.New("no totals")
	}
	for i, f := range found {
		if c[i], err = strconv.ParseFloat(strings.ReplaceAll(string(f[1]), ",", ""), 64); err != nil {
			return c, err
		}
	}
	return c, nil
}

// count runs a peer twice and takes the difference, in which no start is. Threads of Go that wait
// for each other would count, so there is one at a time.
func (s scale) count(ctx context.Context, b *benchmark, p peer) (each counts, err error) {
	const chunk, few, many = 1000, 100, 300
	for _, run := range []struct{ chunks, sign float64 }{{many, 1}, {few, -1}} {
		args := append(slices.Clone(cachegrind), p.path)
		cmd := exec.CommandContext(ctx, "valgrind", append(args, s.argsOf(b, p, int(run.chunks), chunk)...)...)
		cmd.Env = slices.Concat(os.Environ(), p.env, []string{"GOMAXPROCS=1"})
		out, err := cmd.CombinedOutput()
		if err != nil {
			return each, err
		}
		c, err := countsOf(out)
		if err != nil {
			return each, err
		}
		for i := range c {
			each[i] += run.sign * c[i] / ((many - few) * chunk)
		}
	}
	return each, nil
}

// writeCounts writes the counts of all peers. Some allocators do not run under valgrind.
func (r *run) writeCounts(ctx context.Context, w io.Writer) {
	fmt.Fprint(w, "\nCounts an operation, by cachegrind, of simulated caches of 32 KiB and 1 MiB.\n\n",
		"| load | peer | instructions | memory references | misses, 32 KiB | misses, 1 MiB |\n|---|---|---|---|---|---|\n")
	for _, b := range r.benchmarks {
		for _, p := range b.peers {
			if c, err := r.count(ctx, b, p); err != nil {
				fmt.Fprintf(w, "| %s | %s: %v | | | | |\n", b.name, p.label(), err)
			} else {
				fmt.Fprintf(w, "| %s | %s | %.1f | %.1f | %.2f | %.2f |\n", b.name, p.label(), c[0], c[1], max(c[2], 0), max(c[3], 0))
			}
			r.ticked(b, p)
		}
	}
}
