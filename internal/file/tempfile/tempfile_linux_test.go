package tempfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// A process that is killed leaves no file: the file never had a name.
func TestAFileNeverHasAName(t *testing.T) {
	dir := t.TempDir()
	if f, err := Unnamed(dir, 0o600); err == nil {
		f.Close()
	} else {
		t.Skip("a file system without O_TMPFILE: ", err)
	}
	seen := filetest.Watch(t, dir, unix.IN_CREATE|unix.IN_MOVED_TO)
	t.Setenv("TMPDIR", dir)
	f := freehold.Must(Create(dir, "freehold-"))
	defer f.Close()
	other := freehold.Must(Create("", "freehold-"))
	defer other.Close()
	if names := seen(); names != nil {
		t.Errorf("files were created by name: %q", names)
	}
	if _, err := f.WriteAt([]byte("x"), 0); err != nil {
		t.Error(err)
	}
}

// Without Unnamed the name is removed at once.
func TestNameIsRemoved(t *testing.T) {
	dir := t.TempDir()
	f := freehold.Must(named(dir, "freehold-"))
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

// Children of the process do not inherit the file.
func TestChildrenDoNotHaveTheFile(t *testing.T) {
	f, err := Unnamed(t.TempDir(), 0o600)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %#x, %v", flags, err)
	}
}

func TestLink(t *testing.T) {
	dir := t.TempDir()
	f, err := Unnamed(dir, 0o640)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	freehold.Must(f.WriteString("text"))
	name := filepath.Join(dir, "name")
	filetest.Must(t, Link(f, name))
	if got, err := os.ReadFile(name); err != nil || string(got) != "text" {
		t.Errorf("%q, %v", got, err)
	}
	if info, err := os.Lstat(name); err != nil || info.Mode() != 0o640 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	for _, taken := range []string{name, dir} {
		var linkErr *os.LinkError
		if err := Link(f, taken); !errors.Is(err, os.ErrExist) || !errors.As(err, &linkErr) || linkErr.New != taken {
			t.Errorf("%s, which is taken: %v", taken, err)
		}
	}
	f.Close()
	if err := Link(f, name+"2"); err == nil {
		t.Error("a closed file got a name")
	}
}
