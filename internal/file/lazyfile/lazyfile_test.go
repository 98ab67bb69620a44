package lazyfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

func TestFileIsOpenWhileItIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	filetest.Must(t, os.WriteFile(path, []byte("text"), 0o600))
	f := freehold.Must(Find(path))
	if info, err := f.Stat(); err != nil || info.Size() != 4 || f.f != nil {
		t.Errorf("found: %v, %v, open: %t", info, err, f.f != nil)
	}
	if n, err := f.Read(make([]byte, 1)); n != 1 || err != nil || f.f == nil {
		t.Errorf("read %d bytes, %v, open: %t", n, err, f.f != nil)
	}
	if rest, err := io.ReadAll(f); string(rest) != "ext" || err != nil || f.f != nil {
		t.Errorf("read %q, %v, open: %t", rest, err, f.f != nil)
	}
	for range 2 {
		if n, err := f.Read(make([]byte, 1)); n != 0 || err != io.EOF || f.f != nil {
			t.Errorf("at its end: read %d bytes, %v, open: %t", n, err, f.f != nil)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}

	f = freehold.Must(Find(path))
	filetest.Must(t, os.Remove(path))
	if _, err := f.Read(make([]byte, 1)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it has been removed: %v", err)
	}
}

func TestCloseOfAnOpenFile(t *testing.T) {
	f := freehold.Must(Find("lazyfile_test.go"))
	freehold.Must(f.Read(make([]byte, 1)))
	opened := f.f
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := opened.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Close left it open: %v", err)
	}
	if _, err := f.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after Close: %v", err)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	if _, err := Find(dir); err == nil || err.Error() != "read "+dir+": is a directory" {
		t.Errorf("a directory: %v", err)
	}
	if _, err := Find(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	path := filepath.Join(dir, "file")
	filetest.Must(t, os.WriteFile(path, nil, 0))
	if opened, err := os.Open(path); err == nil {
		opened.Close()
		t.Skip("who runs this may read everything")
	}
	if _, err := Find(path); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("without permission: %v", err)
	}
}
