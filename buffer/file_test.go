// Buffers in temporary files.

package buffer_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/internal/test/filetest"
	"github.com/freehold-go/freehold/internal/vm"
)

// mapsFiles skips where the system maps no files.
func mapsFiles(t testing.TB) {
	t.Helper()
	b := newBuffer(t, &buffer.Options{SpillAfter: 1, Dir: filetest.TempDir(t)})
	if _, err := b.WriteString("ab"); errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
}

// onFile reports whether an operation is one on a file. Timers of heaps make others at any time.
func onFile(op vm.Op) bool { return vm.OpExtendFile <= op && op <= vm.OpSyncFile }

func pattern(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i * 7 >> 3)
	}
	return p
}

func TestBufferMovesToAFile(t *testing.T) {
	mapsFiles(t)
	dir := filetest.TempDir(t)
	counter := freehold.NewTagged(alloctest.New(t), "")
	b := buffer.New(counter, &buffer.Options{SpillAfter: 10_000, Dir: dir})
	data := pattern(300_000)
	for n := 0; n < len(data); n += 1000 {
		must1(b.Write(data[n : n+1000]))
		if want := n+1000 > 10_000; b.InFile() != want {
			t.Fatalf("with %d bytes in a file: %t", n+1000, b.InFile())
		}
		if c := counter.Counts(); c.LiveBytes > 10_000 || b.InFile() && c.Live != 0 {
			t.Fatalf("with %d bytes %+v", n+1000, c)
		}
	}
	wantData(t, b, data)
	b.Truncate(100)
	b.Trim()
	if b.Cap() != 100 {
		t.Errorf("capacity %d", b.Cap())
	}
	wantData(t, b, data[:100])
	b.Clear()
	b.Trim()
	if b.Cap() != 0 {
		t.Errorf("capacity %d without data", b.Cap())
	}
	must1(b.Write(data))
	wantData(t, b, data)
	must(t, b.Close())
	wantEmpty(t, dir)
}

// wantEmpty checks that a directory has no files.
func wantEmpty(t testing.TB, dir string) {
	t.Helper()
	files := must1(os.ReadDir(dir))
	if len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}

// One byte may be in memory, and two are in a file.
func TestSpillAfterOne(t *testing.T) {
	mapsFiles(t)
	counter := freehold.NewTagged(alloctest.New(t), "")
	b := buffer.New(counter, &buffer.Options{SpillAfter: 1, Dir: filetest.TempDir(t)})
	for n := 1; n <= 100; n++ {
		must(t, b.WriteByte(byte(n)))
		if c := counter.Counts(); b.InFile() != (n > 1) || c.LiveBytes != max(0, 2-n) {
			t.Fatalf("with %d bytes: in a file %t, %d bytes of the allocator", n, b.InFile(), c.LiveBytes)
		}
	}
	b.Clear()
	b.Trim()
	if !b.InFile() {
		t.Error("it left the file")
	}
	must(t, b.Close())
}

func TestTemporaryFileHasNoName(t *testing.T) {
	mapsFiles(t)
	if runtime.GOOS == "windows" {
		t.Skip("the system removes the file when it is closed")
	}
	dir := filetest.TempDir(t)
	b := newBuffer(t, &buffer.Options{SpillAfter: 1, Dir: dir})
	must(t, b.Grow(2))
	if !b.InFile() {
		t.Error("not in a file")
	}
	wantEmpty(t, dir)
}

func TestDirectoryOfTheTemporaryFileMustExist(t *testing.T) {
	mapsFiles(t)
	dir := filepath.Join(filetest.TempDir(t), "none")
	b := newBuffer(t, &buffer.Options{SpillAfter: 100, Dir: dir})
	data := pattern(100)
	must1(b.Write(data))
	want := "freehold: buffer: temporary file in " + dir + ": "
	if err := b.WriteByte(1); !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("in a directory that does not exist: %v", err)
	}
	wantData(t, b, data)
}

// The buffer is as it was after each call of the system that fails while it moves
// to a file and grows there.
func TestEveryFaultOfTheSystemLeavesTheBufferAsItWas(t *testing.T) {
	mapsFiles(t)
	data := pattern(5000)
	for n, calls := 1, 0; n == 1 || calls >= n; n++ {
		dir := filetest.TempDir(t)
		b := buffer.New(alloctest.New(t), &buffer.Options{SpillAfter: 1000, Dir: dir})
		calls = 0
		restore := vm.SetFault(func(op vm.Op) error {
			if !onFile(op) {
				return nil
			}
			if calls++; calls == n && op != vm.OpUnmapFile {
				return syscall.ENOSPC
			}
			return nil
		})
		var want []byte
		for at := 0; at < len(data); at += 100 {
			_, err := b.Write(data[at : at+100])
			if err == nil {
				want = append(want, data[at:at+100]...)
			} else if !errors.Is(err, syscall.ENOSPC) || err.Error() != "freehold: buffer: temporary file in "+dir+": "+syscall.ENOSPC.Error() {
				t.Errorf("fault %d: %v", n, err)
			}
		}
		restore()
		wantData(t, b, want)
		must(t, b.Close())
		wantEmpty(t, dir)
	}
}

// A full disk refuses the double, and gives what is needed. So does a quota.
func TestGrowthOnADiskThatIsNearlyFull(t *testing.T) {
	mapsFiles(t)
	for _, err := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		growOnceRefused(t, err)
	}
}

func growOnceRefused(t *testing.T, refusal error) {
	b := newBuffer(t, &buffer.Options{SpillAfter: 1, Dir: filetest.TempDir(t)})
	must(t, b.Grow(1000))
	full := 0
	defer vm.SetFault(func(op vm.Op) error {
		if op == vm.OpExtendFile {
			if full++; full == 1 {
				return refusal
			}
		}
		return nil
	})()
	must1(b.Write(pattern(1001)))
	if full != 2 || b.Cap() != 1125 {
		t.Errorf("%v: %d tries, capacity %d, want 2 and 1125", refusal, full, b.Cap())
	}
}

func TestFileTruncatedUnderTheBuffer(t *testing.T) {
	mapsFiles(t)
	if runtime.GOOS == "windows" {
		t.Skip("a mapped file cannot be truncated")
	}
	path := filepath.Join(filetest.TempDir(t), "data")
	b := must1(buffer.Open(path, nil))
	data := pattern(100_000)
	must1(b.Write(data))
	must(t, os.Truncate(path, 20_000))

	other := must1(os.Create(path + "2"))
	defer other.Close()
	must(t, other.Truncate(1000))
	var sum int
	for _, tt := range []struct {
		name string
		call func() error
	}{
		{"Guard", func() error {
			return b.Guard(func() {
				for _, c := range b.Bytes() {
					sum += int(c)
				}
			})
		}},
		{"Write", func() error { _, err := b.Write([]byte("x")); return err }},
		{"WriteByte", func() error { return b.WriteByte(1) }},
		{"ReadAt", func() error { _, err := b.ReadAt(make([]byte, 10), 99_000); return err }},
		{"Read", func() error { _, err := io.Copy(&bytes.Buffer{}, struct{ io.Reader }{b.NewReader()}); return err }},
		{"WriteTo", func() error { _, err := b.WriteTo(&bytes.Buffer{}); return err }},
		{"ReadFrom", func() error { _, err := b.ReadFrom(bytes.NewReader(data)); return err }},
		{"WriteTo a file", func() error { _, err := b.WriteTo(other); return err }},
		{"ReadFrom a file", func() error { _, err := other.Seek(0, 0); must(t, err); _, err = b.ReadFrom(other); return err }},
		{"Extend", func() error { _, err := b.Extend(1 << 20); return err }},
		{"Sync", func() error { return b.Sync() }},
	} {
		if err := tt.call(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if b.Len() != len(data) {
		t.Errorf("%d bytes, want %d", b.Len(), len(data))
	}
	if _, err := b.ReadAt(make([]byte, 10), 10_000); err != nil {
		t.Errorf("where the file still is: %v", err)
	}
	if err := b.Close(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Close: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 20_000 {
		t.Errorf("%d bytes in the file, want 20000", info.Size())
	}
}

// A write within the capacity fails where the file is gone, and appends nothing.
func TestWriteToAFileTruncatedUnderItsCapacity(t *testing.T) {
	mapsFiles(t)
	if runtime.GOOS == "windows" {
		t.Skip("a mapped file cannot be truncated")
	}
	path := filepath.Join(filetest.TempDir(t), "data")
	b := must1(buffer.Open(path, nil))
	must1(b.Write(pattern(1000)))
	must(t, b.Grow(200_000))
	must(t, os.Truncate(path, 100_000))
	if n, err := b.Write(pattern(150_000)); n != 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%d bytes, %v", n, err)
	}
	wantData(t, b, pattern(1000))
	if err := b.Close(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Close: %v", err)
	}
}

// Faults are panics only while a buffer's call lasts.
func TestGuardEnds(t *testing.T) {
	mapsFiles(t)
	b := newBuffer(t, &buffer.Options{SpillAfter: 1, Dir: filetest.TempDir(t)})
	must(t, b.Grow(2))
	must(t, b.Guard(func() {}))
	if debug.SetPanicOnFault(false) {
		t.Error("faults are panics after Guard")
	}
}

// What f panics with is none of Guard's business.
func TestGuardPassesOtherPanics(t *testing.T) {
	mapsFiles(t)
	b := newBuffer(t, &buffer.Options{SpillAfter: 1, Dir: filetest.TempDir(t)})
	must(t, b.Grow(2))
	for _, want := range []any{"mine", error(nil)} {
		func() {
			defer func() {
				p := recover()
				if want != error(nil) && p != want {
					t.Errorf("panic %v, want %v", p, want)
				}
				if want == error(nil) && p == nil {
					t.Error("a fault elsewhere did not panic")
				}
			}()
			_ = b.Guard(func() {
				if want == error(nil) {
					var nothing *int
					*nothing = 1
				}
				panic(want)
			})
		}()
	}
}
