// Export: the same figures for other tools, one entry per sample.

package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
)

// exportTo writes a file by the given function.
func exportTo(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// each calls f for every sample, in the order of loads, rows and rounds.
func (r *run) each(f func(load, *row, sample) error) error {
	for _, l := range r.loads {
		for _, w := range r.rows {
			c := r.cell(l, w)
			if c == nil {
				continue
			}
			for _, s := range c.samples {
				if err := f(l, w, s); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// writeBenchstat writes Go's benchmark format, so that
//
//	benchstat -col /row FILE
//
// shows rows side by side with its own statistics.
func writeBenchstat(w io.Writer, m machine, r *run) error {
	fmt.Fprintf(w, "goos: %s\ngoarch: %s\npkg: github.com/freehold-go/freehold/bench\ncpu: %s\ncommit: %s\n",
		runtime.GOOS, runtime.GOARCH, m.CPU, m.Commit)
	return r.each(func(l load, row *row, s sample) error {
		_, err := fmt.Fprintf(w, "Benchmark%s/row=%s %.0f %.4f %s", l.bench, row.name, max(s.Ops, 1), l.unit.of(s), l.unit)
		if err == nil && l.unit == nanoseconds {
			_, err = fmt.Fprintf(w, " %.4f cpu-ns/op", s.CPU)
		}
		if err == nil {
			_, err = fmt.Fprintln(w)
		}
		return err
	})
}

func writeCSV(w io.Writer, r *run) error {
	c := csv.NewWriter(w)
	c.Write([]string{"load", "row", "round", "unit", "value", "ns", "cpu_ns", "ops", "gcs", "requested", "resident", "mallocs", "others", "noisy"})
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	r.each(func(l load, w *row, s sample) error {
		return c.Write([]string{
			l.key, w.name, strconv.Itoa(s.Round), l.unit.String(), number(l.unit.of(s)),
			number(s.NS), number(s.CPU), number(s.Ops), number(s.GCs),
			number(s.Requested), number(s.Resident), number(s.Mallocs),
			number(s.Others), strconv.FormatBool(s.Noisy),
		})
	})
	c.Flush()
	return c.Error()
}

func writeJSON(w io.Writer, m machine, all []*row, r *run) error {
	type jsonRow struct {
		Name    string `json:"name"`
		What    string `json:"what"`
		Version string `json:"version,omitempty"`
		Skipped string `json:"skipped,omitempty"`
	}
	type jsonCell struct {
		Load    string   `json:"load"`
		Row     string   `json:"row"`
		Unit    string   `json:"unit"`
		Failed  string   `json:"failed,omitempty"`
		Spread  *spread  `json:"spread,omitempty"`
		Samples []sample `json:"samples"`
	}
	out := struct {
		Machine machine    `json:"machine"`
		Rounds  int        `json:"rounds"`
		Seconds float64    `json:"seconds"`
		Others  float64    `json:"others"` // processors' worth
		Noisy   int        `json:"noisy_samples"`
		Rows    []jsonRow  `json:"rows"`
		Cells   []jsonCell `json:"cells"`
		Targets []verdict  `json:"targets"`
	}{Machine: m, Rounds: r.rounds, Seconds: r.took.Seconds(), Others: r.others.share(), Noisy: r.noisy, Targets: judge(r)}
	for _, row := range all {
		out.Rows = append(out.Rows, jsonRow{row.name, row.what, row.version, row.skip})
	}
	for _, l := range r.loads {
		for _, row := range r.rows {
			c := r.cell(l, row)
			if c == nil {
				continue
			}
			j := jsonCell{Load: l.key, Row: row.name, Unit: l.unit.String(), Failed: c.failed, Samples: c.samples}
			if len(c.samples) > 0 {
				s := c.spread(l.unit)
				j.Spread = &s
			}
			out.Cells = append(out.Cells, j)
		}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "\t")
	return e.Encode(out)
}
