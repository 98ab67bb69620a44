// Limits and space of files, as Unix counts them.

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package vm

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A file may grow to RLIMIT_FSIZE. One byte more is an error, without SIGXFSZ.
func TestExtendFileUpToTheLimit(t *testing.T) {
	const most = 1 << 20
	f := newFile(t, 0)
	var before unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &before))
	limit := before
	limit.Cur = most
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		t.Skip(err)
	}
	defer func() { must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &before)) }()
	got := make(chan os.Signal, 2)
	signal.Notify(got, unix.SIGXFSZ, unix.SIGWINCH)
	defer signal.Stop(got)

	must(t, ExtendFile(f, 0, most))
	if err := ExtendFile(f, most, most+1); !errors.Is(err, unix.EFBIG) {
		t.Errorf("a byte more: %v, want EFBIG", err)
	}
	if info, err := f.Stat(); err != nil || info.Size() != most {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
	must(t, unix.Kill(os.Getpid(), unix.SIGWINCH)) // it would be delivered after an earlier SIGXFSZ
	if s := <-got; s != unix.SIGWINCH {
		t.Errorf("ExtendFile caused %v", s)
	}
}

// isSparse reports a file with a hole.
func TestSparseFiles(t *testing.T) {
	const size = 1 << 20
	f := newFile(t, size)
	if !isSparse(f) {
		t.Skip("a file system without holes")
	}
	_, err := f.WriteAt(make([]byte, size/2), 0)
	must(t, err)
	must(t, f.Sync()) // some file systems count blocks late
	if !isSparse(f) {
		t.Error("half of the file is a hole")
	}
	// ExtendFile leaves the hole before its range.
	must(t, ExtendFile(f, size, 2*size))
	must(t, f.Sync())
	if !isSparse(f) {
		t.Error("ExtendFile filled a hole before its range")
	}
	must(t, ExtendFile(f, 0, 2*size))
	must(t, f.Sync())
	if isSparse(f) && runtime.GOOS != "darwin" { // macOS allocates nothing before the file's end
		t.Error("ExtendFile left a hole in its range")
	}
}

// A failed mapping may leave a hole in its range. The range stays reserved.
func TestRangeOfAFailedMappingStays(t *testing.T) {
	size := 4 * PageBytes()
	f := newFile(t, size)
	addr, err := MapFile(f, size, true)
	must(t, err)
	must(t, UnmapFile(addr, size))
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must(t, err)
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	if _, err := mapFile(uintptr(fds[0]), size, true); err == nil {
		t.Fatal("a socket was mapped")
	}
	p, err := unix.MmapPtr(-1, 0, Pointer(addr), size, unix.PROT_NONE, anonymous)
	must(t, err)
	defer unix.MunmapPtr(p, size)
	if uintptr(p) == addr {
		t.Error("the range is free for others")
	}
}
