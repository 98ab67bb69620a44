// Export: the same figures for other tools, one entry per sample.

package bench

import (
	"io"
	"os"
	"runtime"

	"golang.org/x/perf/benchfmt"
)

// stdoutPath means standard output.
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

// each calls f for every sample, in the order of benchmarks, peers and rounds.
func (r *run) each(f func(*benchmark, peer, sample) error) error {
	for _, b := range r.benchmarks {
		for _, p := range b.peers {
			c := r.cell(b, p)
			if c == nil {
				continue
			}
			for _, s := range c.samples {
				if err := f(b, p, s); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// writeText writes Go's benchmark format, so that
//
//	benchstat -row .name,/size,/goroutines -col /peer FILE
//
// shows peers side by side with its own statistics.
func writeText(w io.Writer, m machine, r *run) error {
	out := benchfmt.NewWriter(w)
	return r.each(func(b *benchmark, p peer, s sample) error {
		result := benchfmt.Result{Name: benchfmt.Name(b.name + "/peer=" + p.name), Iters: s.Iters, Values: s.Values}
		for _, c := range [][2]string{
			{"goos", runtime.GOOS}, {"goarch", runtime.GOARCH}, {"pkg", module + "/lab/bench"}, {"cpu", m.cpu}, {"commit", m.commit},
		} {
			result.Config = append(result.Config, benchfmt.Config{Key: c[0], Value: []byte(c[1]), File: true})
		}
		return out.Write(&result)
	})
}
