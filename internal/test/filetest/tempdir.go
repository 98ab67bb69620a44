package filetest

import (
	"os"
	"path/filepath"
	"testing"
)

// TempDir is t.TempDir without RemoveAll, which needs more than Wine has. The directory must not
// have others in it.
func TempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "freehold")
	Must(t, err)
	t.Cleanup(func() {
		files, err := os.ReadDir(dir)
		Must(t, err)
		for _, f := range files {
			Must(t, os.Remove(filepath.Join(dir, f.Name())))
		}
		Must(t, os.Remove(dir))
	})
	return dir
}
