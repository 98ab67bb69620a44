// What only files and memory of Linux can show.

package buffer_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/internal/vm"
)

// Sync writes the data before it makes the length count, and then the length.
func TestSyncWritesTheDataFirst(t *testing.T) {
	path := saved(t, []byte("old"))
	b, err := buffer.Open(path, nil)
	must(t, err)
	b.WriteString(" and new")
	var lengths []int
	restore := vm.SetFault(func(op vm.Op) error {
		if op == vm.OpSync {
			slot, all := readHeader(t, path)
			lengths = append(lengths, all[slot])
		}
		return nil
	})
	err = b.Sync()
	restore()
	must(t, err)
	if !equal(lengths, []int{3, 11}) {
		t.Errorf("when parts are written the lengths are %v, want 3 and 11", lengths)
	}

	restore = failNext(vm.OpSync)
	b.WriteString("!")
	if err := b.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("data that cannot be written: %v", err)
	}
	restore()
	if slot, all := readHeader(t, path); all[slot] != 11 {
		t.Errorf("it was committed: the length is %d", all[slot])
	}
	must(t, b.Close())
}

// revocable is an allocator whose one block can be made inaccessible.
type revocable struct {
	freehold.Allocator
	mem []byte
}

func (r *revocable) Alloc(size, _ int) ([]byte, error) {
	if r.mem == nil {
		var err error
		if r.mem, err = unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON); err != nil {
			return nil, err
		}
	}
	return r.mem[:size:size], nil
}

func (r *revocable) Resize(b []byte, size int) ([]byte, bool) { return r.mem[:size:size], true }

func (r *revocable) Free([]byte) {}

// Data that cannot be written to the temporary file stays where it is, and no file
// stays open.
func TestSpillingThatCannotWrite(t *testing.T) {
	mapsFiles(t)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which closes what is forgotten
	dir := t.TempDir()
	a := &revocable{}
	b := buffer.New(a, &buffer.Options{SpillAfter: 100, Dir: dir})
	_, err := b.Write(pattern(100))
	must(t, err)
	defer unix.Munmap(a.mem)
	must(t, unix.Mprotect(a.mem, unix.PROT_NONE))
	if _, err := b.Write(pattern(100)); !errors.Is(err, syscall.EFAULT) || b.InFile() {
		t.Errorf("%v, in a file: %t", err, b.InFile())
	}
	must(t, unix.Mprotect(a.mem, unix.PROT_READ|unix.PROT_WRITE))
	wantData(t, b, pattern(100))
	wantUnused(t, dir)
	must(t, b.Close())
}

// Where Trim may not map or unmap, the buffer stays as it is.
func TestTrimThatFails(t *testing.T) {
	mapsFiles(t)
	for _, op := range []vm.Op{vm.OpMapFile, vm.OpUnmapFile} {
		dir := t.TempDir()
		b := spilled(t, dir)
		must(t, b.Grow(100_000))
		restore := failNext(op)
		b.Trim()
		restore()
		if b.Cap() < 101_000 {
			t.Errorf("%v fails: the capacity is %d", op, b.Cap())
		}
		wantData(t, b, pattern(1000))
		b.Trim()
		if b.Cap() != 1000 {
			t.Errorf("after %v has failed once: the capacity is %d", op, b.Cap())
		}
		must(t, b.Close())
		wantUnused(t, dir)
	}
}

// A pipe is no buffer, even one that may be written. Open does not open it, which would
// wait for its other end.
func TestPipesAreNoBuffers(t *testing.T) {
	mapsFiles(t)
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	other, err := os.OpenFile(path, os.O_RDWR, 0) // so that nobody waits here
	must(t, err)
	defer other.Close()
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	must(t, err)
	defer unix.Close(watch)
	must1(unix.InotifyAddWatch(watch, path, unix.IN_OPEN))
	for _, readOnly := range []bool{false, true} {
		if _, err := buffer.Open(path, &buffer.OpenOptions{ReadOnly: readOnly}); !errors.Is(err, buffer.ErrForeign) {
			t.Errorf("read-only %t: %v", readOnly, err)
		}
	}
	if n, err := unix.Read(watch, make([]byte, 4096)); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("%d bytes of events, %v: the pipe was opened", n, err)
	}
}

// A copy of a file may have holes. Open fills them, so that a write finds no full
// disk.
func TestHolesAreFilled(t *testing.T) {
	const size = 1 << 20
	path := saved(t, pattern(1000))
	must(t, os.Truncate(path, size))
	blocks := func() int64 {
		var s unix.Stat_t
		must(t, unix.Stat(path, &s))
		return s.Blocks * 512
	}
	if blocks() >= size {
		t.Skip("a file system without holes")
	}
	b, err := buffer.Open(path, nil)
	must(t, err)
	if b.Cap() != size-headerBytes {
		t.Errorf("the capacity is %d", b.Cap())
	}
	must(t, b.Sync()) // some file systems count blocks late
	if n := blocks(); n < size {
		t.Errorf("the file has %d bytes on disk, want %d", n, size)
	}
	wantData(t, b, pattern(1000))
	must(t, b.Close())
}

// Open leaves a new file empty if it cannot write the header: the next one creates it.
func TestHeaderThatDoesNotFit(t *testing.T) {
	mapsFiles(t)
	path := filepath.Join(tempDir(t), "data")
	var before unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &before))
	limit := before
	limit.Cur = headerBytes / 2
	must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
	_, err := buffer.Open(path, nil)
	must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &before))
	if !errors.Is(err, syscall.EFBIG) {
		t.Errorf("a header that does not fit: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
	b, err := buffer.Open(path, nil)
	must(t, err)
	must(t, b.Close())
}

// A child that another goroutine starts has a copy of the descriptor until it becomes
// its program. The lock ends with the buffer all the same, and with an Open that fails.
func TestLockEndsWhileAChildHasTheFile(t *testing.T) {
	path := saved(t, []byte("data"))
	for name, end := range map[string]func(fork func()){
		"Close": func(fork func()) {
			b, err := buffer.Open(path, nil)
			must(t, err)
			fork()
			must(t, b.Close())
		},
		"Close to read": func(fork func()) {
			b, err := buffer.Open(path, &buffer.OpenOptions{ReadOnly: true})
			must(t, err)
			fork()
			must(t, b.Close())
		},
		"Open": func(fork func()) {
			defer vm.SetFault(func(op vm.Op) error {
				if op != vm.OpMapFile {
					return nil
				}
				fork()
				return syscall.EIO
			})()
			if _, err := buffer.Open(path, nil); !errors.Is(err, syscall.EIO) {
				t.Errorf("a file that cannot be mapped: %v", err)
			}
		},
	} {
		child := -1
		end(func() {
			var err error
			child, err = unix.Dup(descriptor(t, filepath.Dir(path)))
			must(t, err)
		})
		b, err := buffer.Open(path, nil)
		must(t, unix.Close(child))
		if err != nil {
			t.Errorf("after %s: %v", name, err)
			continue
		}
		must(t, b.Close())
	}
}

// descriptor returns that of the process's file in a directory.
func descriptor(t *testing.T, dir string) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, dir+"/") {
			n, err := strconv.Atoi(fd.Name())
			must(t, err)
			return n
		}
	}
	t.Skip("this system does not show open files")
	return 0
}

// A sort's temporary file that somebody has truncated is an error, as the buffer's.
func TestSortWhoseTemporaryFileIsTruncated(t *testing.T) {
	path := saved(t, nil)
	for _, o := range []buffer.RecordsOptions{{}, {RecordBytes: 24}} {
		dir := t.TempDir()
		b, err := buffer.Open(path, &buffer.OpenOptions{Dir: dir})
		must(t, err)
		r, err := buffer.NewRecords(b, &o)
		must(t, err)
		for _, p := range fill(rand.New(rand.NewPCG(1, 2)), inputs[0].key, 20_000, o.RecordBytes) {
			must(t, r.AppendBytes(p))
		}
		calls := 0
		err = r.Sort(context.Background(), func(a, b []byte) int {
			if calls++; calls == 5000 {
				must(t, unix.Ftruncate(descriptor(t, dir), 0))
			}
			return bytes.Compare(a, b)
		}, &buffer.SortOptions{Parallel: 1})
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%+v: %v", o, err)
		}
		b.Reset()
		must(t, b.Close())
		wantUnused(t, dir)
	}
}
