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

// A writable file in a read-only directory is refused. Writing it in place would lose the old
// contents on an error.
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
