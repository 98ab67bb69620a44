package filelock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/freehold-go/freehold/internal/test/filetest"
)

func TestSyncEntry(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, path := range []string{
		"file", filepath.Join(dir, "file"),
		"/proc/self/status", // fsync of this directory is EINVAL
	} {
		if err := SyncEntry(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := SyncEntry("none/file"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
	private := filepath.Join(dir, "private")
	filetest.Must(t, os.Mkdir(private, 0o300))
	if err := filetest.AsNobody(func() error { return SyncEntry(filepath.Join(private, "file")) }); err != nil {
		t.Errorf("a directory that may not be read: %v", err)
	}
}
