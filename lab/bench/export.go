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

// open returns the file that the figures are written to. It creates the file.
func open(path string, stdout io.Writer) (io.WriteCloser, error) {
	if path == stdoutPath {
		return noClose{stdout}, nil
	}
	return os.Create(path)
}

type noClose struct{ io.Writer }

func (noClose) Close() error { return nil }

// writeText writes Go's benchmark format, in the order of benchmarks, peers and rounds, so that
//
//	benchstat -row .name,/size,/goroutines -col /peer FILE
//
// shows peers side by side with its own statistics.
func writeText(w io.Writer, m machine, r *run) error {
	out := benchfmt.NewWriter(w)
	for _, b := range r.benchmarks {
		for _, p := range b.peers {
			c := r.cell(b, p)
			if c == nil {
				continue
			}
			for _, s := range c.samples {
				result := benchfmt.Result{Name: benchfmt.Name(b.name + "/peer=" + p.name), Iters: s.Iters, Values: s.Values}
				for _, c := range [][2]string{
					{"goos", runtime.GOOS}, {"goarch", runtime.GOARCH}, {"pkg", module + "/lab/bench"}, {"cpu", m.cpu}, {"commit", m.commit},
				} {
					result.Config = append(result.Config, benchfmt.Config{Key: c[0], Value: []byte(c[1]), File: true})
				}
				if err := out.Write(&result); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
