// Export: the same figures for other tools, one entry per sample.

package bench

import (
	"encoding/csv"
	"io"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/perf/benchfmt"
)

// stdoutPath is the path that stands for standard output.
const stdoutPath = "-"

// exportTo writes a file, or stdout, by the given function.
func exportTo(path string, stdout io.Writer, write func(io.Writer) error) error {
	if path == stdoutPath {
		return write(stdout)
	}
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

// checkWritable returns an error if exportTo could not write to path. It creates the
// file.
func checkWritable(path string) error {
	if path == "" || path == stdoutPath {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
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
	out := benchfmt.NewWriter(w)
	result := benchfmt.Result{}
	for _, c := range [][2]string{
		{"goos", runtime.GOOS}, {"goarch", runtime.GOARCH}, {"pkg", "github.com/freehold-go/freehold/lab/bench"},
		{"cpu", m.CPU}, {"commit", m.Commit},
	} {
		result.Config = append(result.Config, benchfmt.Config{Key: c[0], Value: []byte(c[1]), File: true})
	}
	return r.each(func(l load, row *row, s sample) error {
		result.Name = benchfmt.Name(l.bench + "/row=" + row.name)
		result.Iters = max(s.Ops, 1)
		result.Values = []benchfmt.Value{{Value: l.unit.of(s), Unit: l.unit.String()}}
		if l.unit == nanoseconds {
			result.Values = append(result.Values, benchfmt.Value{Value: s.CPU, Unit: "cpu-ns/op"})
		}
		return out.Write(&result)
	})
}

func writeCSV(w io.Writer, r *run) error {
	c := csv.NewWriter(w)
	c.Write([]string{"load", "row", "round", "unit", "value", "ns", "cpu_ns", "ops", "gcs", "requested", "resident", "peak", "mallocs", "others", "noisy"})
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	r.each(func(l load, w *row, s sample) error {
		return c.Write([]string{
			l.key, w.name, strconv.Itoa(s.Round), l.unit.String(), number(l.unit.of(s)),
			number(s.NS), number(s.CPU), number(float64(s.Ops)), number(float64(s.GCs)),
			number(float64(s.Requested)), number(float64(s.Resident)), number(float64(s.Peak)), number(s.Mallocs),
			number(s.Others), strconv.FormatBool(s.Noisy),
		})
	})
	c.Flush()
	return c.Error()
}
