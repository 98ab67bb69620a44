package tempfile

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A process that is killed at any moment leaves no file if there never was a name.
func TestAFileNeverHasAName(t *testing.T) {
	dir := t.TempDir()
	if f, err := Unnamed(dir, 0o600); err == nil {
		f.Close()
	} else {
		t.Skip("a file system without O_TMPFILE: ", err)
	}
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Skip(err)
	}
	defer unix.Close(watch)
	if _, err := unix.InotifyAddWatch(watch, dir, unix.IN_CREATE|unix.IN_MOVED_TO); err != nil {
		t.Fatal(err)
	}
	f, err := Create(dir, "freehold-")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, err := unix.Read(watch, make([]byte, 4096)); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("%d bytes of events, %v: a file was created by name", n, err)
	}
	if _, err := f.WriteAt([]byte("x"), 0); err != nil {
		t.Error(err)
	}
}

// Elsewhere the name is removed at once.
func TestNameIsRemoved(t *testing.T) {
	dir := t.TempDir()
	f, err := named(dir, "freehold-")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	if _, err := f.WriteAt([]byte("x"), 0); err != nil {
		t.Error(err)
	}
	if _, err := Create(dir+"/none", "freehold-"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in a directory that does not exist: %v", err)
	}
}
