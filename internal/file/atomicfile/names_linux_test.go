package atomicfile

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/file/tempfile"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// A new output appears under its final name and never has another. So a kill leaves no other
// file.
func TestNewOutputHasOneName(t *testing.T) {
	dir := t.TempDir()
	if f, err := tempfile.Unnamed(dir, 0o600); err != nil {
		t.Skip("a file system without O_TMPFILE: ", err)
	} else {
		f.Close()
	}
	seen := filetest.Watch(t, dir, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_DELETE)
	f := freehold.Must(Create(filepath.Join(dir, "out")))
	defer f.Close()
	freehold.Must(f.Write([]byte("x\n")))
	filetest.Must(t, f.Commit())
	if names := seen(); !slices.Equal(names, []string{"out"}) {
		t.Errorf("names created, moved or deleted: %q", names)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "out")); err != nil || string(got) != "x\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// A file that another process creates at the path meanwhile is replaced.
func TestOutputThatIsNoLongerNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f := freehold.Must(Create(path))
	defer f.Close()
	filetest.Must(t, os.WriteFile(path, []byte("other"), 0o600))
	freehold.Must(f.Write([]byte("x\n")))
	filetest.Must(t, f.Commit())
	if got, err := os.ReadFile(path); err != nil || string(got) != "x\n" {
		t.Errorf("%q, %v", got, err)
	}
	want(t, filepath.Dir(path), map[string]string{"out": "x\n"})
}
