package lazyfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Find does not open a pipe, which may take for ever. Read does.
func TestFindDoesNotOpenAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0) // so that opening it takes no time here
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Skip(err)
	}
	defer unix.Close(watch)
	if _, err := unix.InotifyAddWatch(watch, pipe, unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	f, err := Find(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, err := unix.Read(watch, make([]byte, 4096)); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("%d bytes of events, %v: Find opened the pipe", n, err)
	}
	if _, err := writer.WriteString("text"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 10)
	if n, err := f.Read(b); string(b[:n]) != "text" || err != nil {
		t.Errorf("read %q, %v", b[:n], err)
	}
}

// A file that may not be read is an error of Find.
func TestFindTriesToOpenAFile(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("it takes root to be somebody else")
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(path); dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Skip(err)
		}
	}
	found := make(chan error)
	go func() {
		runtime.LockOSThread() // and not unlocked: the thread ends with the goroutine
		const nobody = 65534
		if _, err := unix.SetfsuidRetUid(nobody); err != nil {
			found <- err
			return
		}
		_, err := Find(path)
		found <- err
	}()
	if err := <-found; !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v, want that it may not be read", err)
	}
}
