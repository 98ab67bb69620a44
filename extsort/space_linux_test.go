package extsort_test

import (
	"context"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/freehold-go/freehold/extsort"
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

// openIn returns the names in /proc of the open files in dir.
func openIn(dir string) iter.Seq[string] {
	return func(yield func(string) bool) {
		const open = "/proc/self/fd"
		descriptors, _ := os.ReadDir(open)
		for _, d := range descriptors {
			name := filepath.Join(open, d.Name())
			if to, _ := os.Readlink(name); strings.HasPrefix(to, dir) && !yield(name) {
				return
			}
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
