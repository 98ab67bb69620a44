package atomicfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// A running program may not be written, even by root.
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

// The new file has the attributes of the old one: the special bits of its mode, its access
// control list (the mode's group bits are the list's mask), and the attributes of the user
// namespace. It does not keep the directory's default list unless the old file had one.
func TestTheAttributesStay(t *testing.T) {
	const access = "system.posix_acl_access"
	// Entries of a list: tag, permissions, user or group ID.
	list := func(mask uint16) (b []byte) {
		b = binary.LittleEndian.AppendUint32(b, 2)
		for _, e := range [][3]uint32{{1, 6, math.MaxUint32}, {2, 6, 1234}, {4, 4, math.MaxUint32}, {16, uint32(mask), math.MaxUint32}, {32, 0, math.MaxUint32}} {
			b = binary.LittleEndian.AppendUint16(b, uint16(e[0]))
			b = binary.LittleEndian.AppendUint16(b, uint16(e[1]))
			b = binary.LittleEndian.AppendUint32(b, e[2])
		}
		return b
	}
	get := func(path, name string) string {
		b := make([]byte, 1000)
		n, err := unix.Getxattr(path, name, b)
		if err != nil {
			return err.Error()
		}
		return string(b[:n])
	}
	onEachSystem(t, func(t *testing.T) {
		dir := t.TempDir()
		if err := unix.Setxattr(dir, "system.posix_acl_default", list(7), 0); err != nil {
			t.Skip("a file system without lists: ", err)
		}
		listed, plain := filepath.Join(dir, "listed"), filepath.Join(dir, "plain")
		write(t, listed, "old")
		write(t, plain, "old")
		filetest.Must(t, unix.Setxattr(listed, access, list(6), 0), unix.Setxattr(listed, "user.some", []byte("value"), 0),
			unix.Setxattr(listed, "user.empty", nil, 0), unix.Removexattr(plain, access), os.Chmod(plain, 0o640|fs.ModeSticky))
		if os.Geteuid() == 0 {
			filetest.Must(t, os.Chmod(plain, 0o755|fs.ModeSticky|fs.ModeSetuid|fs.ModeSetgid))
		}
		before := freehold.Must(os.Stat(plain)).Mode()
		for _, path := range []string{listed, plain} {
			filetest.Must(t, create(t, path, "new").Commit())
		}
		if got := get(listed, access); got != string(list(6)) {
			t.Errorf("the access control list is %x, want %x", got, list(6))
		}
		if some, empty := get(listed, "user.some"), get(listed, "user.empty"); some != "value" || empty != "" {
			t.Errorf("user.some is %q, user.empty %q", some, empty)
		}
		if got := get(plain, access); got != unix.ENODATA.Error() {
			t.Errorf("a file without an access control list has %q", got)
		}
		if got := freehold.Must(os.Stat(plain)).Mode(); got != before {
			t.Errorf("the mode is %v, want %v", got, before)
		}

		// If the old file was removed meanwhile, there are no attributes to keep.
		f := create(t, plain, "new")
		filetest.Must(t, os.Remove(plain), f.Commit())
		want(t, dir, map[string]string{"listed": "new", "plain": "new"})
	})
}

// A mount point cannot be renamed over. Containers mount single files.
func TestAMountIsWrittenInPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "old, and longer than the new one")
	if err := unix.Mount(path, path, "", unix.MS_BIND, ""); err != nil {
		t.Skip(err)
	}
	defer unix.Unmount(path, unix.MNT_DETACH)
	f := create(t, path, "new")
	if !f.InPlace() || !f.Overwrites() {
		t.Errorf("in place %t, overwrites %t", f.InPlace(), f.Overwrites())
	}
	filetest.Must(t, f.Commit())
	want(t, filepath.Dir(path), map[string]string{"file": "new"})
}

// Create follows links up to the system's limit. One more is an error.
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

// A file written in place stays the only file, and nothing stays open.
func TestCommitInPlace(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it would close forgotten files
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

// A descriptor's path means the open file, whatever its name is or was. Holders of the
// descriptor read the new contents, even if these are shorter.
func TestDescriptorsAreWrittenInPlace(t *testing.T) {
	dir := t.TempDir()
	const old = "old, and longer than the new one"
	named, deleted, link := filepath.Join(dir, "named"), filepath.Join(dir, "deleted"), filepath.Join(dir, "link")
	open := func(path string) *os.File {
		write(t, path, old)
		return freehold.Must(os.OpenFile(path, os.O_RDWR, 0))
	}
	files := []*os.File{open(named), open(deleted)}
	filetest.Must(t, os.Remove(deleted))
	if fd, err := unix.MemfdCreate("memory", unix.MFD_CLOEXEC); err == nil {
		files = append(files, os.NewFile(uintptr(fd), "memory"))
	}
	for _, held := range files {
		defer held.Close()
		fd := fmt.Sprint("/proc/self/fd/", held.Fd())
		filetest.Must(t, os.Symlink(fd, link))
		for _, path := range []string{fd, fmt.Sprint("/dev/fd/", held.Fd()), link} {
			for _, text := range []string{"new", "", old} {
				f := create(t, path, text)
				if !f.InPlace() || !f.Overwrites() {
					t.Errorf("%s at %s: in place %t, overwrites %t", held.Name(), path, f.InPlace(), f.Overwrites())
				}
				filetest.Must(t, f.Commit())
				got := make([]byte, 100)
				if n, _ := held.ReadAt(got, 0); string(got[:n]) != text {
					t.Errorf("%s at %s has %q, want %q", held.Name(), path, got[:n], text)
				}
			}
			// Discarding an unwritten file changes nothing.
			filetest.Must(t, freehold.Must(Create(path)).Close())
			if info := freehold.Must(held.Stat()); info.Size() != int64(len(old)) {
				t.Errorf("%s at %s has %d bytes after Close", held.Name(), path, info.Size())
			}
		}
		filetest.Must(t, os.Remove(link))
	}
	want(t, dir, map[string]string{"named": old})
}

func TestAnonymousPipesAreWritten(t *testing.T) {
	r, w, err := os.Pipe()
	filetest.Must(t, err)
	f := create(t, fmt.Sprint("/dev/fd/", w.Fd()), "text")
	if !f.InPlace() || f.Overwrites() {
		t.Errorf("in place %t, overwrites %t", f.InPlace(), f.Overwrites())
	}
	filetest.Must(t, errors.Join(f.Commit(), w.Close()))
	if got, err := io.ReadAll(r); string(got) != "text" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	r.Close()
}

// The system cannot open sockets and closed descriptors.
func TestDescriptorsThatCannotBeOpened(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	filetest.Must(t, err)
	path := fmt.Sprint("/dev/fd/", fds[0])
	if _, err := Create(path); !errors.Is(err, syscall.ENXIO) {
		t.Errorf("a socket: %v, want ENXIO", err)
	}
	filetest.Must(t, errors.Join(unix.Close(fds[0]), unix.Close(fds[1])))
	if _, err := Create(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a closed descriptor: %v, want os.ErrNotExist", err)
	}
}

// Neither the old file nor a file that could not be named stays open.
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

// A path without a directory creates the unnamed file in the working directory.
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

// A pipe is not opened, which would wait for a reader. A temporary name does not show a private file.
func TestCreateRegular(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	filetest.Must(t, unix.Mkfifo(pipe, 0o600))
	for _, path := range []string{pipe, os.DevNull, "/proc/self/fd/0"} {
		if _, err := CreateRegular(path); err == nil || err.Error() != "create "+path+": not a regular file that can be replaced" {
			t.Errorf("%s: %v", path, err)
		}
	}
	onEachSystem(t, func(t *testing.T) {
		path := filepath.Join(dir, "private")
		filetest.Must(t, os.WriteFile(path, nil, 0o600))
		f := freehold.Must(CreateRegular(path))
		defer f.Close()
		if mode := freehold.Must(f.Stat()).Mode(); f.temp != "" && mode != 0o600 {
			t.Errorf("%s has mode %v", f.temp, mode)
		}
	})
}
