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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/internal/test/filetest"
	"github.com/freehold-go/freehold/internal/vm"
)

// Sync writes the data before it makes the length count, and then the length.
func TestSyncWritesTheDataFirst(t *testing.T) {
	path := saved(t, []byte("old"))
	b := must1(buffer.Open(path, nil))
	b.WriteString(" and new")
	var lengths []int
	restore := vm.SetFault(func(op vm.Op) error {
		if op == vm.OpSync {
			slot, all := readHeader(t, path)
			lengths = append(lengths, all[slot])
		}
		return nil
	})
	err := b.Sync()
	restore()
	must(t, err)
	if !slices.Equal(lengths, []int{3, 11}) {
		t.Errorf("when parts are written the lengths are %v, want 3 and 11", lengths)
	}

	for _, op := range []vm.Op{vm.OpSync, vm.OpSyncFile} {
		restore = failNext(op)
		b.WriteString("!")
		if err := b.Sync(); !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), path) {
			t.Errorf("data that cannot be written: %v", err)
		}
		restore()
		if slot, all := readHeader(t, path); all[slot] != 11 {
			t.Errorf("it was committed: the length is %d", all[slot])
		}
	}
	calls := 0
	defer vm.SetFault(func(op vm.Op) error { // the last one, of the length that Close cuts the file to
		if op == vm.OpSyncFile {
			if calls++; calls == 3 {
				return syscall.EIO
			}
		}
		return nil
	})()
	if err := b.Close(); !errors.Is(err, syscall.EIO) || calls != 3 {
		t.Errorf("a file that cannot be written at the end: %v, after %d calls", err, calls)
	}
}

// A new file is on disk, with its entry in the directory, before Open returns it. Whatever
// fails of that is Open's error, and leaves a file that is opened as a new one.
func TestOpenOfANewFileThatFails(t *testing.T) {
	mapsFiles(t)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which closes what is forgotten
	ops := map[vm.Op]int{}
	count := func(fails vm.Op, call int) (restore func()) {
		clear(ops)
		return vm.SetFault(func(op vm.Op) error {
			if !onFile(op) {
				return nil
			}
			if ops[op]++; op == fails && ops[op] == call {
				return syscall.EIO
			}
			return nil
		})
	}
	for _, tt := range []struct {
		fails vm.Op
		calls int // that there are
	}{{vm.OpExtendFile, 1}, {vm.OpMapFile, 1}, {vm.OpSync, 1}, {vm.OpSyncFile, 2}} {
		for call := 1; call <= tt.calls; call++ {
			dir := t.TempDir()
			path := filepath.Join(dir, "data")
			restore := count(tt.fails, call)
			b, err := buffer.Open(path, nil)
			restore()
			if b != nil || !errors.Is(err, syscall.EIO) {
				t.Fatalf("operation %d, call %d: %v", tt.fails, call, err)
			}
			if info := must1(os.Stat(path)); info.Size() != 0 {
				t.Errorf("operation %d, call %d: the file has %d bytes", tt.fails, call, info.Size())
			}
			filetest.WantUnused(t, dir)
			restore = count(vm.Op(vm.NumOps), 0)
			b = must1(buffer.Open(path, nil))
			restore()
			if ops[tt.fails] != tt.calls {
				t.Errorf("operation %d: %d calls, want %d", tt.fails, ops[tt.fails], tt.calls)
			}
			must(t, b.Close())
		}
	}
}

// A sort of a file's records takes its temporary file in the file's own directory, or in Dir.
func TestSortOfAFileTakesItsDirectory(t *testing.T) {
	path := saved(t, pattern(1000))
	missing := filepath.Join(filetest.TempDir(t), "missing")
	t.Setenv("TMPDIR", missing)
	for _, dir := range []string{"", missing} {
		b := must1(buffer.Open(path, &buffer.OpenOptions{Dir: dir}))
		r := must1(buffer.NewRecords(b, &buffer.RecordsOptions{RecordBytes: 10}))
		if err := r.SortBy(context.Background(), nil, nil); (err == nil) != (dir == "") || err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Dir %q: %v", dir, err)
		}
		must(t, b.Close())
	}
}

// A length on disk that is longer than a file will be is replaced before the file is
// cut: after a loss of power the two fit.
func TestTheLengthIsOnDiskBeforeTheFileIsCut(t *testing.T) {
	const long, short = 100_000, 10
	data := append(pattern(long), 1)
	whole := saved(t, data[:long])
	left := saved(t, data[:short]) // by a process that was killed after Truncate
	must(t, os.Truncate(left, headerBytes+long))
	cut := func(b *buffer.Buffer) { b.Truncate(short); b.Trim() }
	const none = vm.Op(vm.NumOps)
	for _, tt := range []struct {
		why   string
		path  string
		do    func(b *buffer.Buffer)
		fails vm.Op
		syncs int
		size  int // of the file then
	}{
		{"Trim", whole, cut, none, 1, short},
		{"by less than a header", whole, func(b *buffer.Buffer) { b.Truncate(long - 1); b.Trim() }, none, 1, long - 1},
		{"once is enough", whole, func(b *buffer.Buffer) { cut(b); b.Trim() }, none, 1, short},
		{"it cannot be written", whole, cut, vm.OpSync, 1, long},
		{"a killed process did not Trim", left, (*buffer.Buffer).Trim, none, 1, short},
		{"more cannot be mapped", left, func(b *buffer.Buffer) { b.Grow(1) }, vm.OpMapFile, 1, short},
		{"Sync did it", whole, func(b *buffer.Buffer) { b.Truncate(short); b.Sync(); b.Trim() }, none, 2, short},
		{"a longer one", whole, func(b *buffer.Buffer) { b.WriteByte(1); b.Commit(); b.Trim() }, none, 0, long + 1},
	} {
		path := copyOf(t, tt.path)
		b := must1(buffer.Open(path, nil))
		syncs := 0
		restore := vm.SetFault(func(op vm.Op) error {
			if op == vm.OpSync {
				syncs++
				slot, lengths := readHeader(t, path)
				if info := must1(os.Stat(path)); lengths[slot] != b.Len() || info.Size() < headerBytes+long {
					t.Errorf("%s: the length %d is written when the file has %d bytes", tt.why, lengths[slot], info.Size())
				}
			}
			if op == tt.fails {
				return syscall.EIO
			}
			return nil
		})
		tt.do(b)
		restore()
		if info := must1(os.Stat(path)); syncs != tt.syncs || info.Size() != headerBytes+int64(tt.size) {
			t.Errorf("%s: %d syncs and %d bytes, want %d and %d", tt.why, syncs, info.Size()-headerBytes, tt.syncs, tt.size)
		}
		n := b.Len()
		wantData(t, b, data[:n])
		must(t, b.Close())
		wantFile(t, path, data[:n])
	}
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
	must1(b.Write(pattern(100)))
	defer unix.Munmap(a.mem)
	must(t, unix.Mprotect(a.mem, unix.PROT_NONE))
	if _, err := b.Write(pattern(100)); !errors.Is(err, syscall.EFAULT) || b.InFile() {
		t.Errorf("%v, in a file: %t", err, b.InFile())
	}
	must(t, unix.Mprotect(a.mem, unix.PROT_READ|unix.PROT_WRITE))
	wantData(t, b, pattern(100))
	filetest.WantUnused(t, dir)
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
		filetest.WantUnused(t, dir)
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
	seen := filetest.Watch(t, path, unix.IN_OPEN)
	for _, readOnly := range []bool{false, true} {
		if _, err := buffer.Open(path, &buffer.OpenOptions{ReadOnly: readOnly}); !errors.Is(err, buffer.ErrForeign) {
			t.Errorf("read-only %t: %v", readOnly, err)
		}
	}
	if events := seen(); events != nil {
		t.Error("the pipe was opened")
	}
}

// sparse returns the path of a file with the header of a buffer, and a hole behind it.
func sparse(t *testing.T, length, hole int) string {
	t.Helper()
	mapsFiles(t)
	path := filepath.Join(filetest.TempDir(t), "data")
	must(t, os.WriteFile(path, header(0, length), 0o666))
	must(t, os.Truncate(path, int64(headerBytes+hole)))
	if diskBytes(t, path) >= hole {
		t.Skip("a file system without holes")
	}
	return path
}

func diskBytes(t *testing.T, path string) int {
	t.Helper()
	var s unix.Stat_t
	must(t, unix.Stat(path, &s))
	return int(s.Blocks * 512)
}

// A copy of a file may have holes. Open fills them, so that a write finds no full
// disk.
func TestHolesAreFilled(t *testing.T) {
	const size = 1 << 20
	path := sparse(t, size, size)
	restore := failNext(vm.OpExtendFile)
	if b, err := buffer.Open(path, nil); b != nil || !errors.Is(err, syscall.EIO) {
		t.Errorf("holes that cannot be filled: %v, %v", b, err)
	}
	restore()
	b := must1(buffer.Open(path, nil))
	must(t, b.Sync()) // some file systems count blocks late
	if n := diskBytes(t, path); n < headerBytes+size {
		t.Errorf("the file has %d bytes on disk, want %d", n, headerBytes+size)
	}
	wantData(t, b, make([]byte, size))
	must(t, b.Close())
}

// A file takes disk space for its data only, and none if Open refuses it.
func TestHoleBehindTheDataIsNotFilled(t *testing.T) {
	const hole, data = 3 << 29, 1 << 20
	path := sparse(t, 0, hole)
	b := must1(buffer.Open(path, &buffer.OpenOptions{MaxBytes: data}))
	if n := diskBytes(t, path); n >= data || b.Cap() != 0 {
		t.Errorf("the file has %d bytes on disk, and capacity %d", n, b.Cap())
	}
	must1(b.Write(pattern(data)))
	must(t, b.Sync())
	if n := diskBytes(t, path); n < data {
		t.Errorf("the file has %d bytes on disk, and %d of data", n, data)
	}
	b.Trim()
	if info := must1(os.Stat(path)); info.Size() != headerBytes+data {
		t.Errorf("the file has %d bytes after Trim", info.Size())
	}
	must(t, b.Close())

	path = sparse(t, hole, hole)
	if _, err := buffer.Open(path, &buffer.OpenOptions{MaxBytes: data}); err == nil || diskBytes(t, path) >= data {
		t.Errorf("more than MaxBytes: %v, and the file has %d bytes on disk", err, diskBytes(t, path))
	}
}

// A file may be created in a directory that may not be read.
func TestDirectoryThatMayNotBeRead(t *testing.T) {
	mapsFiles(t)
	dir := filetest.TempDir(t)
	must(t, os.Chmod(dir, 0o300))
	if os.Getuid() == 0 { // who may read it
		must(t, os.Chown(dir, filetest.Nobody, filetest.Nobody))
	}
	must(t, filetest.AsNobody(func() error {
		b, err := buffer.Open(filepath.Join(dir, "data"), nil)
		if err == nil {
			err = b.Close()
		}
		return err
	}))
	must(t, os.Chmod(dir, 0o700))
}

// Open leaves a new file empty if it cannot write the header: the next one creates it.
func TestHeaderThatDoesNotFit(t *testing.T) {
	mapsFiles(t)
	path := filepath.Join(filetest.TempDir(t), "data")
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
	b := must1(buffer.Open(path, nil))
	must(t, b.Close())
}

// A child that another goroutine starts has a copy of the descriptor until it becomes
// its program. The lock ends with the buffer all the same, and with an Open that fails.
func TestLockEndsWhileAChildHasTheFile(t *testing.T) {
	path := saved(t, []byte("data"))
	for name, end := range map[string]func(fork func()){
		"Close": func(fork func()) {
			b := must1(buffer.Open(path, nil))
			fork()
			must(t, b.Close())
		},
		"Close to read": func(fork func()) {
			b := must1(buffer.Open(path, &buffer.OpenOptions{ReadOnly: true}))
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

// So it does if it cannot go on after that. The header is on disk before Open returns,
// and so before the file can grow.
func TestNewFileThatCannotBeMappedOrWritten(t *testing.T) {
	mapsFiles(t)
	for _, op := range []vm.Op{vm.OpMapFile, vm.OpSync} {
		path := filepath.Join(filetest.TempDir(t), "data")
		restore := failNext(op)
		_, err := buffer.Open(path, nil)
		restore()
		if !errors.Is(err, syscall.EIO) || strings.Count(err.Error(), path) != 1 {
			t.Errorf("%v fails: %v", op, err)
		}
		if info := must1(os.Stat(path)); info.Size() != 0 {
			t.Errorf("%v fails: the file has %d bytes", op, info.Size())
		}
	}
}

// descriptor returns that of the process's file in a directory.
func descriptor(t *testing.T, dir string) int {
	t.Helper()
	for fd := range filetest.Open(t, dir) {
		return must1(strconv.Atoi(fd))
	}
	t.Skip("this system does not show open files")
	return 0
}

// A sort's temporary file that somebody has truncated is an error, as the buffer's.
func TestSortWhoseTemporaryFileIsTruncated(t *testing.T) {
	path := saved(t, nil)
	for _, o := range []buffer.RecordsOptions{{}, {RecordBytes: 24}} {
		dir := t.TempDir()
		b := must1(buffer.Open(path, &buffer.OpenOptions{Dir: dir}))
		r := must1(buffer.NewRecords(b, &o))
		for _, p := range fill(rand.New(rand.NewPCG(1, 2)), inputs[0].key, 20_000, o.RecordBytes) {
			must(t, r.AppendBytes(p))
		}
		calls := 0
		err := r.Sort(context.Background(), func(a, b []byte) int {
			if calls++; calls == 5000 {
				must(t, unix.Ftruncate(descriptor(t, dir), 0))
			}
			return bytes.Compare(a, b)
		}, &buffer.SortOptions{Parallel: 1})
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%+v: %v", o, err)
		}
		b.Clear()
		must(t, b.Close())
		filetest.WantUnused(t, dir)
	}
}
