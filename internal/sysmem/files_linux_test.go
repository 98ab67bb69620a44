package sysmem

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFilesOfTheRootDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	for _, size := range []int{0, 1, 4095, 4096, 4097, 100000} {
		want := strings.Repeat("x", size)
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		if text, err := fs.ReadFile(Root(), file[1:]); err != nil || string(text) != want {
			t.Errorf("%d of %d bytes, %v", len(text), size, err)
		}
	}
	if _, err := fs.ReadFile(Root(), file[1:]+"x"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := fs.ReadFile(Root(), filepath.Dir(file)[1:]); err == nil {
		t.Error("a directory was read")
	}
}
