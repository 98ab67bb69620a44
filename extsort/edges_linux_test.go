// What open files and direct access show of a sort.

package extsort_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/extsort"
	"github.com/freehold-go/freehold/internal/file/atomicfile"
)

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
