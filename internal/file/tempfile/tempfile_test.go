package tempfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/freehold-go/freehold"
)

// A new file is empty, can be written and read, and vanishes when it is closed. Only its owner
// may open it in another way.
func TestCreate(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir) // on Windows
	for _, in := range []string{dir, ""} {
		f := freehold.Must(Create(in, "freehold-"))
		if _, err := f.WriteAt([]byte("text"), 1); err != nil {
			t.Error(err)
		}
		b := make([]byte, 5)
		if n, err := f.ReadAt(b, 0); n != 5 || err != nil || string(b) != "\x00text" {
			t.Errorf("read %q, %v", b[:n], err)
		}
		if info, err := f.Stat(); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
			t.Errorf("the file is %v, %v, want -rw-------", info.Mode(), err)
		}
		if got := filepath.Dir(f.Name()); got != dir {
			t.Errorf("in %q: the file is in %s", in, got)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%v are left, %v", left, err)
		}
	}
	if _, err := Create(filepath.Join(dir, "none"), "freehold-"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a directory that does not exist: %v", err)
	}
}
