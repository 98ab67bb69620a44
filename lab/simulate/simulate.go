// Simulate: recorded requests, run against freehold's cache and its peers.

// Package simulate shows how many of recorded requests a cache of some size answers.
package simulate

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// Command is the command line.
type Command struct {
	Files   []string   `arg:"" name:"file" help:"Traces of requests, which may be packed by gzip or bzip2. - is standard input."`
	Format  string     `short:"f" enum:"auto,keys,sizes,timed,arc,extents,words,words4,oracle" default:"auto" help:"What a file has. Lines of text: keys (one a line), sizes (key,size), timed (time,key,size), arc (first key, how many), extents (first sector, how many). Binary: words and words4 (keys of 8 and 4 bytes, big-endian), oracle (libCacheSim's oracleGeneral). By default it follows from the file's name and its first line."`
	Percent []float64  `short:"p" placeholder:"P" default:"0.1,1,10" help:"Bounds of the caches, in percent of the footprint: the bytes of all different keys and values. Default: 0.1,1,10."`
	Size    []cli.Size `short:"s" placeholder:"SIZE" help:"Bounds of the caches in bytes, instead of --percent."`
	Entries []int      `short:"n" placeholder:"N" help:"Bounds of the caches in entries with values of --value, instead of --percent."`
	Value   cli.Size   `default:"1000" placeholder:"SIZE" help:"Bytes of each value, if the file has no sizes. Default: 1000."`
	Limit   int        `placeholder:"N" help:"Read N requests of each file at most."`
	Cache   []string   `short:"c" placeholder:"NAME" help:"Caches to compare, of ${policies}. Default: all."`
	CSV     bool       `help:"Print the table as CSV."`
}

// Names returns the names of the caches, for the help text.
func Names() string { return strings.Join(names(), ", ") }

func names() (all []string) {
	for _, p := range policies {
		all = append(all, p.name)
	}
	return all
}

// A row has the results of all caches for one trace and one bound.
type row struct {
	trace    *trace
	bound    int
	percent  float64 // of the footprint
	outcomes []outcome
}

// An outcome has the answers of a cache.
type outcome struct{ requests, hits, bytes, hitBytes int }

func (o outcome) ratio() float64     { return float64(o.hits) / float64(max(o.requests, 1)) }
func (o outcome) byteRatio() float64 { return float64(o.hitBytes) / float64(max(o.bytes, 1)) }

// Run prints a table with a row for each trace and each bound.
func (c *Command) Run(ctx context.Context, st cli.Streams) error {
	chosen, err := c.check()
	if err != nil {
		return err
	}
	bar := cli.NewBar(st.Err, 100*time.Millisecond)
	defer bar.Clear()
	var rows []row
	for i, path := range c.Files {
		show := func(part float64, text string) {
			bar.Show((float64(i)+part)/float64(len(c.Files)), path+": "+text)
		}
		src := source{path, strings.TrimPrefix(c.Format, "auto"), st.In, uint32(c.Value), c.Limit}
		t, err := src.read(ctx, func(part float64) { show(part/10, "reading") })
		if err != nil {
			return err
		}
		footprint := t.footprint()
		bounds := c.bounds(footprint)
		for j, bound := range bounds {
			r := row{trace: t, bound: bound, percent: 100 * float64(bound) / float64(footprint)}
			for k, p := range chosen {
				text := fmt.Sprintf("%s, %s", p.name, cli.Bytes(int64(bound)))
				o, err := p.replay(ctx, t, bound, func(part float64) {
					done := (float64(j*len(chosen)+k) + part) / float64(len(bounds)*len(chosen))
					show(.1+.9*done, text)
				})
				if err != nil {
					return err
				}
				r.outcomes = append(r.outcomes, o)
			}
			rows = append(rows, r)
		}
		t.requests = nil
	}
	bar.Clear()
	if c.CSV {
		return writeCSV(st.Out, chosen, rows)
	}
	return writeTable(st.Out, chosen, rows)
}

// check returns the caches to compare, or an error for flags that make no sense.
func (c *Command) check() (chosen []policy, err error) {
	for _, name := range c.Cache {
		if !slices.Contains(names(), name) {
			return nil, cli.Usagef("--cache %s: want one of %s", name, strings.Join(names(), ", "))
		}
	}
	for _, p := range c.Percent {
		if !(p > 0 && p <= 100) {
			return nil, cli.Usagef("--percent %v: want more than 0, and at most 100", p)
		}
	}
	if slices.ContainsFunc(c.Entries, func(n int) bool { return n < 1 }) || c.Limit < 0 || c.Value < 0 || c.Value > 1<<30 {
		return nil, cli.Usagef("--entries %v, --limit %d, --value %v: negative or too large", c.Entries, c.Limit, c.Value)
	}
	for _, p := range policies {
		if len(c.Cache) == 0 || slices.Contains(c.Cache, p.name) {
			chosen = append(chosen, p)
		}
	}
	return chosen, nil
}

// bounds returns the bounds of the caches, in bytes.
func (c *Command) bounds(footprint int) (all []int) {
	for _, s := range c.Size {
		all = append(all, int(s))
	}
	for _, n := range c.Entries {
		all = append(all, n*(keyBytes+int(c.Value)))
	}
	if len(all) == 0 {
		for _, p := range c.Percent {
			all = append(all, int(float64(footprint)*p/100))
		}
	}
	return all
}

// replay runs a trace against a cache. A cache that takes no such bound answers nothing.
func (p policy) replay(ctx context.Context, t *trace, bound int, show func(part float64)) (o outcome, err error) {
	if bound < leastBound {
		return o, nil
	}
	c := p.make(bound)
	defer c.close()
	for i, q := range t.requests {
		if i%(1<<14) == 0 {
			if err := ctx.Err(); err != nil {
				return o, err
			}
			show(float64(i) / float64(len(t.requests)))
		}
		o.requests++
		o.bytes += int(q.size)
		if c.get(q.key) {
			o.hits++
			o.hitBytes += int(q.size)
		} else {
			c.set(q.key, q.size)
		}
	}
	return o, nil
}

// leastBound is the least bound that all caches take.
const leastBound = cache.MinBytes

// cells returns a figure for each cache, or - if it took no such bound.
func (r row) cells(ratio func(outcome) float64) (cells []string) {
	for _, o := range r.outcomes {
		cell := "-"
		if o.requests > 0 {
			cell = strings.TrimPrefix(fmt.Sprintf("%.4f", ratio(o)), "0")
		}
		cells = append(cells, cell)
	}
	return cells
}

func writeTable(w io.Writer, chosen []policy, rows []row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	write := func(cells ...string) { fmt.Fprintln(t, strings.Join(cells, "\t")+"\t") }
	write(append([]string{"trace", "hits of", "bound", "%"}, titles(chosen)...)...)
	for _, r := range rows {
		head := []string{r.trace.name, "requests", cli.Bytes(int64(r.bound)), fmt.Sprintf("%.3g", r.percent)}
		write(append(head, r.cells(outcome.ratio)...)...)
		if r.trace.sized {
			head[1] = "bytes"
			write(append(head, r.cells(outcome.byteRatio)...)...)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if slices.ContainsFunc(rows, func(r row) bool { return r.bound < leastBound }) {
		_, err := fmt.Fprintf(w, "\n-: the bound is below %s, the least that all caches take. A longer trace, or --percent or --size, sets a larger one.\n", cli.Bytes(leastBound))
		return err
	}
	return nil
}

func titles(chosen []policy) (all []string) {
	for _, p := range chosen {
		all = append(all, p.name)
	}
	return all
}

func writeCSV(w io.Writer, chosen []policy, rows []row) error {
	out := csv.NewWriter(w)
	out.Write(append([]string{"trace", "hits of", "bound", "percent"}, titles(chosen)...))
	for _, r := range rows {
		head := []string{r.trace.name, "requests", strconv.Itoa(r.bound), fmt.Sprintf("%.3g", r.percent)}
		out.Write(append(head, r.cells(outcome.ratio)...))
		if r.trace.sized {
			head[1] = "bytes"
			out.Write(append(head, r.cells(outcome.byteRatio)...))
		}
	}
	out.Flush()
	return out.Error()
}
