package lazyfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// Find does not open a pipe, which may block for ever. Read does.
func TestFindDoesNotOpenAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	writer := freehold.Must(os.OpenFile(pipe, os.O_RDWR, 0))
	defer writer.Close()
	seen := filetest.Watch(t, pipe, unix.IN_OPEN)
	f := freehold.Must(Find(pipe))
	defer f.Close()
	if events := seen(); events != nil {
		t.Error("Find opened the pipe")
	}
	freehold.Must(writer.WriteString("text"))
	b := make([]byte, 10)
	if n, err := f.Read(b); string(b[:n]) != "text" || err != nil {
		t.Errorf("read %q, %v", b[:n], err)
	}
}

// Find returns an error for a file that may not be read.
func TestFindTriesToOpenAFile(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("it takes root to be somebody else")
	}
	path := filepath.Join(t.TempDir(), "file")
	filetest.Must(t, os.WriteFile(path, nil, 0o600))
	for dir := filepath.Dir(path); dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Skip(err)
		}
	}
	err := filetest.AsNobody(func() error { _, err := Find(path); return err })
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v, want that it may not be read", err)
	}
}
