// Lines, sorted: from a file to a file, with a given amount of memory.

package main

import (
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"github.com/freehold-go/freehold/lab/process"
)

// A run is one sort of lines.
type run struct {
	ns, cpu float64
	peak    uint64 // resident bytes that are no file's
}

// besides is what a sort may use beyond the memory that it was given.
const besides = 64 << 20

// runLines gives each peer the same start: the input is in the page cache, there
// are pages for the output, and nothing waits to be written to the disk.
func runLines(p *params, sort func(p *params, from, to string) (run, error)) (r result, err error) {
	from, err := linesFile(p)
	if err != nil {
		return r, err
	}
	to := filepath.Join(p.Dir, "sorted")
	defer os.Remove(to)
	if err := copyFile(from, to); err != nil {
		return r, err
	}
	if err := os.Remove(to); err != nil {
		return r, err
	}
	process.SyncDisks()
	ran, err := sort(p, from, to)
	if err != nil {
		return r, err
	}
	r.NS, r.CPU, r.Ops = ran.ns, ran.cpu, 1
	r.Peak, r.Resident, r.Requested = ran.peak, ran.peak, uint64(p.Memory)+besides
	r.Sum, err = sumOfFile(to)
	return r, err
}

func copyFile(from, to string) error {
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
	// Through memory: the file system could share the blocks instead.
	if _, err := io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, make([]byte, 1<<20)); err != nil {
		return err
	}
	return out.Close()
}

func sumOfFile(path string) (uint64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	if _, err := io.CopyBuffer(struct{ io.Writer }{sum}, struct{ io.Reader }{f}, make([]byte, 1<<20)); err != nil {
		return 0, err
	}
	return uint64(sum.Sum32()), nil
}
