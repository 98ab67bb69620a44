package atomicfile

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/freehold-go/freehold/internal/file/tempfile"
)

// An output that is new appears under its name and has no other before. So a kill
// never leaves another.
func TestNewOutputHasOneName(t *testing.T) {
	dir := t.TempDir()
	if f, err := tempfile.Unnamed(dir, 0o600); err != nil {
		t.Skip("a file system without O_TMPFILE: ", err)
	} else {
		f.Close()
	}
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Skip(err)
	}
	defer unix.Close(watch)
	if _, err := unix.InotifyAddWatch(watch, dir, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_DELETE); err != nil {
		t.Fatal(err)
	}
	f, err := Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write([]byte("x\n")); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	events := make([]byte, 4096)
	n, err := unix.Read(watch, events)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for events = events[:n]; len(events) > 0; {
		e := (*unix.InotifyEvent)(unsafe.Pointer(&events[0]))
		name := events[unix.SizeofInotifyEvent:][:e.Len]
		names = append(names, string(bytes.TrimRight(name, "\x00")))
		events = events[unix.SizeofInotifyEvent+e.Len:]
	}
	if !slices.Equal(names, []string{"out"}) {
		t.Errorf("names created, moved or deleted: %q", names)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "out")); err != nil || string(got) != "x\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// Who creates a file of that name meanwhile has it replaced.
func TestOutputThatIsNoLongerNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.WriteFile(path, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("x\n")); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "x\n" {
		t.Errorf("%q, %v", got, err)
	}
	want(t, filepath.Dir(path), map[string]string{"out": "x\n"})
}
