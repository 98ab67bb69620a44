// Peers: package extsort and github.com/lanrat/extsort, in a Go program.

package main

import (
	"bufio"
	"context"
	"os"
	"runtime/debug"

	"github.com/freehold-go/freehold/extsort"
	"github.com/freehold-go/freehold/lab/process"
	lanrat "github.com/lanrat/extsort"
)

func sortByExtsort(p *params, from, to string) (run, error) {
	o := &extsort.Options{MemoryBytes: int(p.Memory), Parallel: p.Parallel, TempDirs: []string{p.Dir}}
	return here(func() error { return extsort.SortFile(context.Background(), to, o, from) })
}

// here runs f in this process.
func here(f func() error) (r run, err error) {
	if _, err := process.ResetPeak(); err != nil {
		return r, err
	}
	if r.ns, r.cpu, err = timed(f); err != nil {
		return r, err
	}
	r.peak, err = process.PeakWithoutFiles()
	return r, err
}

// lanratChunks is how many chunks of lines are in memory at once: one is read, one
// waits, and each of two workers sorts one. lanratLineBytes is what a line takes:
// its header and, rounded up, about fifty characters.
const (
	lanratChunks    = 4
	lanratLineBytes = 16 + 64
)

// sortByLanrat gives it the memory by the number of lines in a chunk, as it counts
// no bytes.
func sortByLanrat(p *params, from, to string) (run, error) {
	c := lanrat.DefaultConfig()
	c.ChunkSize = int(p.Memory / lanratChunks / lanratLineBytes)
	c.NumWorkers, c.TempFilesDir = p.Parallel, p.Dir
	return here(func() error { return lanratSort(c, from, to) })
}

func lanratSort(c *lanrat.Config, from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	lines := make(chan string, 1000)
	read := make(chan error, 1)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(in)
		s.Buffer(make([]byte, 1<<20), 1<<20)
		for s.Scan() {
			lines <- s.Text()
		}
		read <- s.Err()
	}()
	sorter, sorted, failed := lanrat.Strings(lines, c)
	go sorter.Sort(context.Background())
	w := bufio.NewWriterSize(out, 1<<20)
	for line := range sorted {
		w.WriteString(line)
		w.WriteByte('\n')
	}
	for _, failed := range []<-chan error{failed, read} {
		if err := <-failed; err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return out.Close()
}

func lanratVersion(*params) (string, error) {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == "github.com/lanrat/extsort" {
			return "lanrat/extsort " + m.Version, nil
		}
	}
	return "lanrat/extsort", nil
}
