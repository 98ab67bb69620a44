// MapFile, Sync and UnmapFile: their guarantees.

package vm

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
)

// newFile returns an empty file grown to size bytes, which is removed at the test's end. It is
// not in t.TempDir, whose removal fails under Wine.
func newFile(t testing.TB, size uintptr) *os.File {
	t.Helper()
	f, err := os.CreateTemp("", "freehold")
	must(t, err)
	t.Cleanup(func() {
		f.Close()
		must(t, os.Remove(f.Name()))
	})
	must(t, f.Truncate(int64(size)))
	return f
}

// mapped maps a file until the test ends. On systems without mapped files it skips
// the test.
func mapped(t testing.TB, f *os.File, size uintptr, writable bool) uintptr {
	t.Helper()
	addr, err := MapFile(f, size, writable)
	if errors.Is(err, ErrUnsupported) {
		t.Skip("this system has no mapped files: ", err)
	}
	must(t, err)
	t.Cleanup(func() { must(t, UnmapFile(addr, size)) })
	return addr
}

func TestMapFile(t *testing.T) {
	size := 2*PageBytes() + 100 // not whole pages
	f := newFile(t, size)
	addr := mapped(t, f, size, true)
	wantZero(t, addr, size, "fresh file")
	fill(addr, size)
	must(t, Sync(addr, size))
	got, err := os.ReadFile(f.Name())
	must(t, err)
	if !bytes.Equal(got, bytesAt(addr, size)) {
		t.Error("what was written to the memory is not in the file")
	}

	_, err = f.WriteAt([]byte{99}, 5)
	must(t, err)
	if got := bytesAt(addr, size)[5]; got != 99 {
		t.Errorf("what was written to the file is not in memory: %d", got)
	}
	bytesAt(addr, size)[5] = pattern(5)

	second := mapped(t, f, PageBytes(), false)
	wantFilled(t, second, PageBytes(), 0, "the first page, read-only")
	if !faults(func() { bytesAt(second, 1)[0] = 1 }) {
		t.Error("a read-only mapping may be written")
	}
	must(t, f.Close())
	wantFilled(t, addr, size, 0, "with the file closed")
}

// TestMapFileKeepsData: the file has the data after UnmapFile.
func TestMapFileKeepsData(t *testing.T) {
	size := 3 * PageBytes()
	f := newFile(t, size)
	addr, err := MapFile(f, size, true)
	if errors.Is(err, ErrUnsupported) {
		t.Skip("this system has no mapped files: ", err)
	}
	must(t, err)
	fill(addr, size)
	must(t, UnmapFile(addr, size))
	if !readFaults(addr) || !readFaults(addr+size-1) {
		t.Error("an unmapped file may be read")
	}
	again := mapped(t, f, size, false)
	wantFilled(t, again, size, 0, "mapped again")
}

func TestMapFileErrors(t *testing.T) {
	page := PageBytes()
	f := newFile(t, page+1)
	mapped(t, f, page+1, true)
	closed := newFile(t, page)
	closed.Close()
	readOnly, err := os.Open(f.Name())
	must(t, err)
	defer readOnly.Close()
	for _, tt := range []struct {
		why      string
		f        *os.File
		size     uintptr
		writable bool
		want     error // nil means any error
	}{
		{"one byte past the end", f, page + 2, true, io.ErrUnexpectedEOF},
		{"far past the end", f, math.MaxInt / 2, true, io.ErrUnexpectedEOF},
		{"closed", closed, page, true, nil},
		{"not writable", readOnly, page, true, os.ErrPermission},
	} {
		addr, err := MapFile(tt.f, tt.size, tt.writable)
		var e *Error
		if addr != 0 || !errors.As(err, &e) || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%s: %#x, %v, want %v", tt.why, addr, err, tt.want)
		}
	}
	wantPanic(t, "empty", "freehold: vm: map file", func() { MapFile(f, 0, true) })
	wantPanic(t, "size beyond int", "freehold: vm: map file", func() { MapFile(f, math.MaxInt+1, true) })
	wantPanic(t, "unmap of nothing", "freehold: vm: unmap file", func() { UnmapFile(page, 0) })
	wantPanic(t, "unmap inside a page", "freehold: vm: unmap file", func() { UnmapFile(page+1, page) })
	wantPanic(t, "sync inside a page", "freehold: vm: sync", func() { Sync(page+1, page) })
}

// TestMapFileRecycles maps and unmaps at random: live mappings never overlap
// and keep their contents, and the addresses in use stay bounded.
func TestMapFileRecycles(t *testing.T) {
	const unit = 64 << 10 // at least a page
	const maxUnits, maxLive = 8, 6
	f := newFile(t, maxUnits*unit)
	mapped(t, f, unit, false)
	rnd := rand.New(rand.NewPCG(1, 2))
	type mapping struct{ addr, size uintptr }
	var live []mapping
	distinct := map[uintptr]bool{}
	for range 2000 {
		if len(live) == maxLive || len(live) > 0 && rnd.IntN(2) == 0 {
			i := rnd.IntN(len(live))
			must(t, UnmapFile(live[i].addr, live[i].size))
			live = append(live[:i], live[i+1:]...)
			continue
		}
		m := mapping{size: unit * uintptr(1+rnd.IntN(maxUnits))}
		var err error
		m.addr, err = MapFile(f, m.size, false)
		must(t, err)
		for _, o := range live {
			if m.addr < o.addr+o.size && o.addr < m.addr+m.size {
				t.Fatalf("%d bytes at %#x and %d at %#x overlap", m.size, m.addr, o.size, o.addr)
			}
		}
		live = append(live, m)
		for u := uintptr(0); u < m.size; u += unit {
			sink = *(*byte)(Pointer(m.addr + u))
			distinct[m.addr+u] = true
		}
	}
	for _, m := range live {
		must(t, UnmapFile(m.addr, m.size))
	}
	if most := 4 * maxLive * maxUnits; len(distinct) > most {
		t.Errorf("%d addresses used, want at most %d", len(distinct), most)
	}
}

// TestAdviseFile: Advise works on mapped files in every build.
func TestAdviseFile(t *testing.T) {
	size := 4 * PageBytes()
	f := newFile(t, size)
	addr := mapped(t, f, size, true)
	fill(addr, size)
	for _, a := range []Advice{Normal, Sequential, Random, WillNeed, Populate} {
		if err := Advise(addr, size, a); err != nil && !errors.Is(err, ErrUnsupported) {
			t.Errorf("advice %d: %v", a, err)
		}
	}
	wantFilled(t, addr, size, 0, "advised")
}

// MapFile does not compare a device's size with the mapping's.
func TestMapFileOfADevice(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no device to map, though Wine shows some")
	}
	f, err := os.OpenFile("/dev/zero", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no device to map: ", err)
	}
	defer f.Close()
	addr, err := MapFile(f, PageBytes(), true)
	if errors.Is(err, ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if b := bytesAt(addr, PageBytes()); b[0] != 0 {
		t.Error("not zero")
	}
	must(t, UnmapFile(addr, PageBytes()))
}

func TestExtendFile(t *testing.T) {
	f := newFile(t, 100)
	_, err := f.WriteAt([]byte{1, 2, 3}, 97)
	must(t, err)
	must(t, ExtendFile(f, 100, 300_000))
	must(t, ExtendFile(f, 300_000, 300_000))
	must(t, ExtendFile(f, 0, 200_000)) // bytes that it already has
	got, err := os.ReadFile(f.Name())
	must(t, err)
	want := make([]byte, 300_000)
	copy(want[97:], []byte{1, 2, 3})
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes, want 300000, or not the data and zeros", len(got))
	}

	closed := newFile(t, 0)
	closed.Close()
	if err := ExtendFile(closed, 0, 1); err == nil {
		t.Error("a closed file was extended")
	}
	wantPanic(t, "backwards", "freehold: vm: extend file", func() { ExtendFile(f, 2, 1) })
	wantPanic(t, "from before the file", "freehold: vm: extend file", func() { ExtendFile(f, -1, 1) })
}

// File systems without allocation get zeros written.
func TestWriteZeros(t *testing.T) {
	const size, to = 300_000, 3<<20 + 1
	f := newFile(t, size)
	_, err := f.WriteAt([]byte{1, 2, 3}, 12_287)
	must(t, err)
	must(t, writeZeros(f, 100, size, to))
	got, err := os.ReadFile(f.Name())
	must(t, err)
	want := make([]byte, to)
	copy(want[12_287:], []byte{1, 2, 3})
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes, want %d, or not the data and zeros", len(got), to)
	}
	must(t, f.Sync()) // some file systems count blocks late
	if isSparse(f) {
		t.Error("the file has holes")
	}
	must(t, writeZeros(f, 0, to, 10))
	if info, err := f.Stat(); err != nil || info.Size() != to {
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
}

// No disk is that large: the file keeps its length, and ExtendFile writes nothing.
func TestExtendFileBeyondTheDisk(t *testing.T) {
	f := newFile(t, 100)
	if hasSpace(f, 1<<50) {
		t.Skip("a disk of a PiB, or one that does not tell")
	}
	for _, err := range []error{ExtendFile(f, 100, 1<<50), AllocateFile(f, 100, 1<<50), writeZeros(f, 100, 100, 1<<50)} {
		if err == nil {
			t.Error("the disk has a PiB less than that")
		}
	}
	info, err := f.Stat()
	must(t, err)
	if info.Size() != 100 {
		t.Errorf("%d bytes, want 100", info.Size())
	}
}

// If the system finds the disk full after it has allocated some space, the file keeps its
// length. If the system allocates no space, ExtendFile writes zeros.
func TestExtendFileByOtherSystems(t *testing.T) {
	f := newFile(t, 100)
	full := errors.New("the disk is full")
	err := extendFile(f, 100, 300_000, func(f *os.File, from, to int64) error {
		must(t, f.Truncate(from+(to-from)/2))
		return full
	})
	info, statErr := f.Stat()
	must(t, statErr)
	if !errors.Is(err, full) || info.Size() != 100 {
		t.Errorf("%v, and the file has %d bytes, want the error and 100", err, info.Size())
	}
	must(t, extendFile(f, 100, 300_000, func(*os.File, int64, int64) error { return ErrUnsupported }))
	got, err := os.ReadFile(f.Name())
	if err != nil || !bytes.Equal(got, make([]byte, 300_000)) {
		t.Errorf("%d bytes, %v, want 300000 zeros", len(got), err)
	}
}
