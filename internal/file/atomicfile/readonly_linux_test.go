package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A file may be writable and its directory not. It is then refused, not written in
// place, which would lose the old contents to any error.
func TestReadOnlyDirectory(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("it takes root to be somebody else")
	}
	dir := filepath.Join("/tmp", filepath.Base(t.TempDir())+"-freehold")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "file")
	write(t, path, "old")
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // and not unlocked: the thread ends with the goroutine
		const nobody = 65534
		if _, err := unix.SetfsuidRetUid(nobody); err != nil {
			failed <- err
			return
		}
		_, err := Create(path)
		failed <- err
	}()
	if err := <-failed; !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "takes a new file in its directory") {
		t.Errorf("%v, want that the directory takes no file", err)
	}
	want(t, dir, map[string]string{"file": "old"})
}
