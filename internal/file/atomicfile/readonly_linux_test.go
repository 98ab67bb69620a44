package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/internal/test/filetest"
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
	filetest.Must(t, os.Chmod(path, 0o666))
	err := filetest.AsNobody(func() error { _, err := Create(path); return err })
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "takes a new file in its directory") {
		t.Errorf("%v, want that the directory takes no file", err)
	}
	want(t, dir, map[string]string{"file": "old"})
}
