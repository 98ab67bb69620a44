//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package vm

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A write to a read-only mapping is one after a truncation too, a lost page is lost, and all other
// faults are somebody else's.
func TestFileFault(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	must(t, err)
	defer f.Close()
	size := 2*PageBytes() + 1
	must(t, f.Truncate(int64(size)))
	addr, err := MapFile(f, size, false)
	must(t, err)
	defer UnmapFile(addr, size)
	mapped := bytesAt(addr, size)
	other, err := unix.Mmap(-1, 0, int(PageBytes()), unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	must(t, err)
	defer unix.Munmap(other)

	fault := func(touch func()) (err error, passed bool) {
		defer func() { passed = recover() != nil }()
		err = CatchFaults(func() error { touch(); return nil }, func(addr uintptr) error {
			return FileFault(f, mapped, false, addr)
		})
		return err, false
	}
	var sink byte
	for _, length := range []uintptr{size, PageBytes()} {
		must(t, f.Truncate(int64(length)))
		if err, _ := fault(func() { mapped[5] = 1 }); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("a write to a file of %d bytes: %v", length, err)
		}
		if err, passed := fault(func() { sink += other[0] }); err != nil || !passed {
			t.Errorf("a fault elsewhere: %v, passed %t", err, passed)
		}
	}
	if err, _ := fault(func() { sink += mapped[size-1] }); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a read of a lost page: %v", err)
	}
	if err, _ := fault(func() { mapped[size-1] = 1 }); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a write to a lost page: %v", err)
	}
	if err := FileFault(f, mapped, true, addr); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a page of a writable mapping: %v", err)
	}
	must(t, f.Truncate(int64(size)))
	for _, writable := range []bool{false, true} {
		err := FileFault(f, mapped, writable, addr)
		if err == nil || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, fs.ErrPermission) == writable {
			t.Errorf("a page of a whole file, writable %t: %v", writable, err)
		}
	}
	if err := FileFault(f, mapped, true, addr+size); err != nil {
		t.Errorf("the byte after the mapping: %v", err)
	}
}
