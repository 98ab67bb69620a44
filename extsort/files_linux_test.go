// Open files and their disk space during a sort.

package extsort_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/extsort"
	"github.com/freehold-go/freehold/internal/file/atomicfile"
)

// Several passes over temporary files need no more space than one.
func TestSpaceOfTemporaryFiles(t *testing.T) {
	times := 16
	if testing.Short() {
		times = 8
	}
	text := strings.Repeat(large(), times)
	for key, o := range withKeys() {
		o.MemoryBytes, o.Parallel, o.TempDirs = 1<<20, 2, []string{t.TempDir()}
		if key != "no key" {
			o.Key = func(_, r []byte) []byte { return r[:4] }
		}
		var most int64
		merged := false
		o.Progress = func(p extsort.Progress) {
			merged = merged || p.Phase == extsort.PhaseMerging
			most = max(most, spaceOfFiles(o.TempDirs[0]))
		}
		must(t, extsort.Sort(context.Background(), io.Discard, o, strings.NewReader(text)))
		stored := int64(len(text))
		if key != "no key" {
			stored += stored / 17 * (8 + 4 - 1)
		}
		if !merged {
			t.Fatal("one pass was enough")
		}
		if most > stored*6/5 {
			t.Errorf("%s: %d bytes of temporary files for records of %d", key, most, stored)
		}
	}
}

// spaceOfFiles returns how much disk space the open files in dir have.
func spaceOfFiles(dir string) (n int64) {
	for name := range openIn(dir) {
		var info syscall.Stat_t
		if syscall.Stat(name, &info) == nil {
			n += info.Blocks * 512
		}
	}
	return n
}

// Temporary files are closed once their runs have been merged to fewer.
func TestFilesThatWereMergedAreClosed(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which closes what is forgotten
	o := smallest(t)
	passes, most := 0, 0
	o.Progress = func(p extsort.Progress) {
		if p.Phase == extsort.PhaseMerging && p.Done == 0 {
			passes++
		}
		if p.Phase == extsort.PhaseWriting {
			most = max(most, len(slices.Collect(openIn(o.TempDirs[0]))))
		}
	}
	must(t, extsort.Sort(context.Background(), io.Discard, o, strings.NewReader(strings.Repeat(large(), 4))))
	if passes == 0 || most != 1 {
		t.Errorf("after %d passes %d files are open, want the one of the worker", passes, most)
	}
	noFiles(t, o.TempDirs[0])
}

// A sort that fails closes its inputs: the one that it was reading, too.
func TestSortFileClosesItsInputs(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which closes what is forgotten
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	must(t, os.WriteFile(in, []byte("short\n"+strings.Repeat("long", 100_000)), 0o600))
	err := extsort.SortFile(context.Background(), filepath.Join(dir, "out"), smallest(t), in)
	if !errors.As(err, new(*extsort.TooLongError)) {
		t.Errorf("%v, want a TooLongError", err)
	}
	must(t, os.Remove(in))
	noFiles(t, dir)
}

// What a sort has written past the page cache may be written on as any file.
func TestOutputMayBeWrittenOn(t *testing.T) {
	text := large()
	o := smallest(t)
	path := filepath.Join(t.TempDir(), "out")
	f := freehold.Must(atomicfile.Create(path))
	defer f.Close()
	for _, times := range []int{1, 2} {
		must(t, extsort.Sort(context.Background(), f, o, strings.NewReader(text)))
		if at, err := f.Seek(0, 2); err != nil || at != int64(times*len(text)) {
			t.Errorf("the file ends at %d, %v, want %d", at, err, times*len(text))
		}
	}
	if _, err := f.WriteString("and a line\n"); err != nil {
		t.Error(err)
	}
	must(t, f.Commit())
	got := freehold.Must(os.ReadFile(path))
	sorted := joinLines(sortedBy(splitLines(text), o))
	same(t, string(got), sorted+sorted+"and a line\n")
}

// onRead calls f before the first Read.
type onRead struct {
	io.Reader
	f func()
}

func (r *onRead) Read(b []byte) (int, error) {
	if r.f != nil {
		r.f()
		r.f = nil
	}
	return r.Reader.Read(b)
}

// A sort has as few workers as there are files that the process may open, though others
// open files meanwhile. Workers merge runs to fewer, which takes the most files.
func TestSortWithFewDescriptors(t *testing.T) {
	const spare, workers, times = 8, 2, 8 // so large that runs are merged to fewer
	text := strings.Repeat(large(), times)
	var before unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	lowest := freehold.Must(unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0))
	unix.Close(lowest)
	few := before
	few.Cur = uint64(lowest + spare + 2*workers)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Skip(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &before)

	var opened []int
	// open leaves so many descriptors.
	open := func(leave int) {
		for {
			fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				break
			}
			opened = append(opened, fd)
		}
		for range leave {
			unix.Close(opened[len(opened)-1])
			opened = opened[:len(opened)-1]
		}
	}
	defer func() {
		for _, fd := range opened {
			unix.Close(fd)
		}
	}()
	o := smallest(t)
	o.MemoryBytes, o.Parallel = 4*extsort.MinMemoryBytes, 4
	merges := 0
	o.Progress = func(p extsort.Progress) {
		if p.Phase == extsort.PhaseMerging {
			merges++
		}
	}
	var got bytes.Buffer
	in := strings.NewReader(text)
	if err := extsort.Sort(context.Background(), &got, o, &onRead{in, func() { open(2 * workers) }}); err != nil {
		t.Error(err)
	}
	if merges == 0 {
		t.Error("no runs were merged to fewer")
	}
	lines := strings.SplitAfter(text, "\n")
	slices.Sort(lines)
	same(t, got.String(), strings.Join(lines, ""))

	open(0)
	in.Seek(0, io.SeekStart)
	err := extsort.Sort(context.Background(), io.Discard, o, in)
	if !errors.Is(err, syscall.EMFILE) || !strings.Contains(err.Error(), "RLIMIT_NOFILE") {
		t.Errorf("without a descriptor: %v", err)
	}
}
