package secret

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/freehold-go/freehold/internal/test/child"
	"github.com/freehold-go/freehold/internal/vm"
)

// flags returns the VmFlags of the mapping that begins at addr.
func flags(t *testing.T, addr uintptr) []string {
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil || !bytes.Contains(text, []byte("VmFlags:")) {
		t.Skip("this system does not show the flags of mappings: ", err)
	}
	_, rest, _ := strings.Cut(string(text), fmt.Sprintf("%08x-", addr))
	_, rest, _ = strings.Cut(rest, "VmFlags:")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.Fields(line)
}

// The kernel confirms Strength: lo is locked, dd is left out of dumps, wf is wiped at fork, dc is not
// copied at fork, and rd is readable.
func TestKernelConfirmsStrength(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Store) {
		k := made(t, s, "abc")
		defer k.Destroy()
		got := flags(t, k.slot.chunk.addr)
		has := k.Strength()
		for flag, want := range map[string]bool{
			"lo": has&Locked != 0,
			"dd": has&NoDump != 0,
			"wf": has&NoFork != 0 && has&Hidden == 0,
			"dc": has&NoFork != 0 && has&Hidden != 0,
			"rd": has&Closed == 0,
		} {
			if slices.Contains(got, flag) != want {
				t.Errorf("%v: the flags are %v", has, got)
			}
		}
		k.Use(func([]byte) error {
			if got := flags(t, k.slot.chunk.addr); !slices.Contains(got, "rd") || slices.Contains(got, "wr") {
				t.Errorf("in Use the flags are %v", got)
			}
			return nil
		})
		k.Destroy()
		if got := flags(t, k.slot.chunk.addr); slices.Contains(got, "lo") {
			t.Errorf("after Destroy the flags are %v", got)
		}
	})
}

// A range has a guard page of its own on each side, also where it has no other neighbour.
func TestGuardPages(t *testing.T) {
	page := vm.PageBytes()
	size := 37 * page
	above, err := vm.ReserveSecret(size) // Linux takes the next range from the addresses below it
	if err != nil {
		t.Fatal(err)
	}
	r := addresses{idle: map[uintptr][]uintptr{}}
	addr, err := r.take(size)
	if err := errors.Join(err, unix.MunmapPtr(vm.Pointer(above), size)); err != nil {
		t.Fatal(err)
	}
	for _, guard := range []uintptr{addr - page, addr + size} {
		if err := unix.Msync(unsafe.Slice((*byte)(vm.Pointer(guard)), page), unix.MS_ASYNC); err != nil {
			t.Errorf("the page at %d of %d bytes: %v", int(guard-addr), size, err)
		}
	}
}

// A child that is forked during Use reads zeros or nothing.
func TestForkDuringUse(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Store) {
		k := made(t, s, "abc")
		defer k.Destroy()
		if k.Strength()&NoFork == 0 {
			t.Skip("not NoFork")
		}
		var pipe [2]int
		if err := unix.Pipe(pipe[:]); err != nil {
			t.Fatal(err)
		}
		k.Use(func(b []byte) error {
			pid, err := forkAndWrite(pipe[1], unsafe.Pointer(&b[0]), len(b))
			unix.Close(pipe[1])
			if err != 0 {
				t.Skip("no fork: ", err)
			}
			unix.Wait4(pid, nil, 0, nil)
			return nil
		})
		got := make([]byte, 8)
		n, err := unix.Read(pipe[0], got)
		unix.Close(pipe[0])
		if err != nil || n != 0 && string(got[:n]) != "\x00\x00\x00" {
			t.Errorf("the child reads %q, %v", got[:max(n, 0)], err)
		}
	})
}

// forkAndWrite forks a child that writes n bytes to fd and exits, by system calls alone.
//
//go:norace
//go:nosplit
func forkAndWrite(fd int, p unsafe.Pointer, n int) (pid int, errno unix.Errno) {
	id, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno == 0 && id == 0 {
		unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(p), uintptr(n))
		for {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	return int(id), errno
}

// Hidden memory cannot be read by the way that debuggers take, even during Use.
func TestHiddenFromDebuggers(t *testing.T) {
	everywhere(t, func(t *testing.T, s *Store) {
		k := made(t, s, "abc")
		defer k.Destroy()
		k.Use(func(b []byte) error {
			mem, err := os.Open("/proc/self/mem")
			if err != nil {
				t.Skip(err)
			}
			defer mem.Close()
			got := make([]byte, 3)
			_, err = mem.ReadAt(got, int64(uintptr(unsafe.Pointer(&b[0]))))
			if read := err == nil && string(got) == "abc"; read && k.Strength()&Hidden != 0 {
				t.Errorf("%v memory reads %q", k.Strength(), got)
			} else if !read && k.Strength()&Hidden == 0 {
				t.Skip("no memory can be read here: ", err)
			}
			return nil
		})
	})
}

// A core dump that gcore writes during Use has a string of Go's heap, and not the secret.
func TestCoreDump(t *testing.T) {
	gcore, err := exec.LookPath("gcore")
	if err != nil {
		t.Skip("gcore (of Debian's gdb) is not installed: ", err)
	}
	if testing.Short() {
		t.Skip("a dump takes seconds")
	}
	child.In(t, func() {
		for _, refused := range [][]vm.Op{nil, {vm.OpHide}} {
			weaken(t, refused...)
			k, err := NewStore(nil).Make(32, func(b []byte) error {
				for i := range b {
					b[i] = 'a' + byte(i*i%23)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			control := bytes.Repeat([]byte("CONTROL"), 5)
			var want [32]byte // the complement of the secret, so that the test itself has no copy
			dir := t.TempDir()
			k.Use(func(b []byte) error {
				for i := range b {
					want[i] = ^b[i]
				}
				out, err := exec.Command(gcore, "-o", filepath.Join(dir, "core"), fmt.Sprint(os.Getpid())).CombinedOutput()
				if err != nil {
					t.Skipf("gcore: %v\n%s", err, out)
				}
				return nil
			})
			dumps, _ := filepath.Glob(filepath.Join(dir, "core.*"))
			if len(dumps) != 1 {
				t.Skip("gcore wrote no dump")
			}
			dump, err := os.ReadFile(dumps[0])
			if err != nil || !bytes.Contains(dump, control) {
				t.Skip("the dump does not have Go's heap: ", err)
			}
			for i := range want {
				want[i] = ^want[i]
			}
			if bytes.Contains(dump, want[:]) {
				t.Errorf("the dump has the secret, whose memory is %v", k.Strength())
			}
			k.Destroy()
		}
	})
}
