// Lines, sorted: from a file to a file, with a given amount of memory.

package sorts

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	lanrat "github.com/lanrat/extsort"

	"github.com/freehold-go/freehold/extsort"
	"github.com/freehold-go/freehold/lab/bench/measure"
	"github.com/freehold-go/freehold/lab/process"
)

var (
	dir     = flag.String("dir", os.TempDir(), "folder for lines and temporary files")
	command = flag.String("command", "freehold", "the freehold command")
)

// A linesPeer sorts a file into another, and returns the most that was resident and is no file's.
type linesPeer struct {
	name string
	sort func(b *testing.B, memory int64, from, to string) (peak uint64)
}

var linesPeers = []linesPeer{
	{"freehold-sort", func(b *testing.B, memory int64, from, to string) uint64 {
		return sortBy(b, memory, from, to, *command, "sort")
	}},
	{"gnu-sort", func(b *testing.B, memory int64, from, to string) uint64 {
		version, err := exec.Command("sort", "--version").Output()
		if err != nil || !bytes.Contains(version, []byte("GNU")) {
			b.Skip("sort is not GNU's")
		}
		return sortBy(b, memory, from, to, "sort")
	}},
	{"freehold-extsort", func(b *testing.B, memory int64, from, to string) uint64 {
		o := &extsort.Options{MemoryBytes: int(memory), Parallel: runtime.NumCPU(), TempDirs: []string{*dir}}
		return sortHere(b, func() error { return extsort.SortFile(context.Background(), to, o, from) })
	}},
	{"lanrat-extsort", func(b *testing.B, memory int64, from, to string) uint64 {
		return sortHere(b, func() error { return lanratSort(memory, from, to) })
	}},
}

// BenchmarkLines gives each peer the same start: the input is in the page cache, there are pages
// for the output, and nothing waits to be written to the disk.
func BenchmarkLines(b *testing.B) {
	const besides = 64 << 20 // what a sort may use beyond the memory that it was given
	for _, kind := range lineKinds {
		for i, p := range linesPeers {
			if i > 1 && kind.name != "mixed" {
				continue // packages show what they do on one kind
			}
			measure.Run(b, "kind="+kind.name, p.name, func(b *testing.B) {
				s := measure.Size()
				from, to := kind.file(*dir, s.LineBytes), filepath.Join(*dir, "sorted")
				defer os.Remove(to)
				copyFile(from, to)
				must(0, os.Remove(to))
				process.SyncDisks()
				peak := p.sort(b, s.SortMemory, from, to)
				b.ReportMetric(float64(peak)/1e6, "peak-MB")
				b.ReportMetric(float64(peak)/float64(s.SortMemory+besides), "peak/allowed")
				measure.Sum(b, sumOfFile(to))
			})
		}
	}
}

// sortBy runs a command with flags that freehold and GNU both have.
func sortBy(b *testing.B, memory int64, from, to, name string, args ...string) (largest uint64) {
	var said bytes.Buffer
	args = append(args, "-S", fmt.Sprintf("%db", memory), fmt.Sprintf("--parallel=%d", runtime.NumCPU()), "-T", *dir, "-o", to, from)
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stderr = &said
	measure.Once(b, 1, func() {
		must(0, cmd.Start())
		peak := process.Watch(cmd.Process.Pid, 20*time.Millisecond)
		if err := cmd.Wait(); err != nil {
			b.Fatalf("%v: %s", err, strings.TrimSpace(said.String()))
		}
		largest = uint64(peak())
	})
	b.ReportMetric(float64(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()), "cpu-ns/op")
	return largest
}

// sortHere runs a sort in this process.
func sortHere(b *testing.B, f func() error) uint64 {
	startPeak(b)
	measure.Once(b, 1, func() { must(0, f()) })
	return must(process.PeakWithoutFiles())
}

// lanratSort gives github.com/lanrat/extsort the memory by the number of lines in a chunk, as it
// counts no bytes.
func lanratSort(memory int64, from, to string) error {
	// One chunk is read, one waits, and each of two workers sorts one. A line takes its header
	// and, rounded up, about fifty characters.
	const chunks, lineBytes = 4, 16 + 64
	c := lanrat.DefaultConfig()
	c.ChunkSize = int(memory / chunks / lineBytes)
	c.NumWorkers, c.TempFilesDir = runtime.NumCPU(), *dir
	in := must(os.Open(from))
	defer in.Close()
	out := must(os.Create(to))
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

func copyFile(from, to string) {
	in := must(os.Open(from))
	defer in.Close()
	out := must(os.Create(to))
	defer out.Close()
	// Through memory: the file system could share the blocks instead.
	must(io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, make([]byte, 1<<20)))
	must(0, out.Close())
}

func sumOfFile(path string) uint64 {
	f := must(os.Open(path))
	defer f.Close()
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	must(io.CopyBuffer(struct{ io.Writer }{sum}, struct{ io.Reader }{f}, make([]byte, 1<<20)))
	return uint64(sum.Sum32())
}
