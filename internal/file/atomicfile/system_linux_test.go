package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// A program that runs may not be written, by root neither.
func TestAProgramThatRunsIsNotReplaced(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	if f, err := Create(self); !errors.Is(err, syscall.ETXTBSY) {
		t.Errorf("%v, want ETXTBSY", err)
		if err == nil {
			f.Close()
		}
	}
}

func TestTheOwnerStays(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give files away")
	}
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "old")
	if err := os.Chown(path, 1234, 5678); err != nil {
		t.Skip(err)
	}
	filetest.Must(t, create(t, path, "new").Commit())
	info := freehold.Must(os.Stat(path))
	if s := info.Sys().(*syscall.Stat_t); s.Uid != 1234 || s.Gid != 5678 {
		t.Errorf("the owner is %d:%d, not that of the old file", s.Uid, s.Gid)
	}
}

// As many links as the system allows lead to a file, and one more is too many.
func TestManyLinks(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "0"), "old")
	for i := range maxLinks + 1 {
		if err := os.Symlink(fmt.Sprint(i), filepath.Join(dir, fmt.Sprint(i+1))); err != nil {
			t.Skip(err)
		}
	}
	for i := range maxLinks + 2 {
		path := filepath.Join(dir, fmt.Sprint(i))
		_, want := os.Stat(path)
		f, err := Create(path)
		if (err == nil) != (want == nil) {
			t.Errorf("%d links: %v, and the system says %v", i, err, want)
		}
		if err == nil {
			f.Close()
		}
	}
}

// What is written in place stays the only file, and nothing is open afterwards.
func TestCommitInPlace(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which closes what is forgotten
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	r := freehold.Must(os.OpenFile(pipe, os.O_RDWR, 0))
	f := create(t, pipe, "text")
	if !f.InPlace() || f.Path() != pipe {
		t.Errorf("in place: %t, path %s", f.InPlace(), f.Path())
	}
	if err := f.Commit(); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(pipe); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("the pipe is %v, %v", info.Mode(), err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("the directory has %v", entries)
	}
	r.Close()
	filetest.WantUnused(t, dir)
}

// Neither the old file nor one that could have no name stays open.
func TestNoFileStaysOpen(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	onEachSystem(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "file")
		write(t, path, "old")
		for _, end := range []func(*File) error{(*File).Close, (*File).Commit} {
			if err := end(create(t, path, "new")); err != nil {
				t.Error(err)
			}
			filetest.WantUnused(t, dir)
		}
	})
}

// A file without a directory is created in the working one.
func TestUnnamedInTheWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	real := unnamed
	defer func() { unnamed = real }()
	in := ""
	unnamed = func(dir string, perm uint32) (*os.File, error) {
		in = dir
		return real(dir, perm)
	}
	create(t, "file", "new").Close()
	if in != "." {
		t.Errorf("it was created in %q", in)
	}
}
