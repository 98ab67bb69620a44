package buffer_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"testing"

	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/internal/test/filetest"
	"github.com/freehold-go/freehold/internal/vm"
)

// failNext makes the next call of an operation fail.
func failNext(op vm.Op) (restore func()) {
	failed := false
	return vm.SetFault(func(o vm.Op) error {
		if o != op || failed {
			return nil
		}
		failed = true
		return syscall.EIO
	})
}

// spilled returns a buffer in a temporary file in dir.
func spilled(t *testing.T, dir string) *buffer.Buffer {
	b := buffer.New(alloctest.New(t), &buffer.Options{SpillAfter: 1, Dir: dir})
	must1(b.Write(pattern(1000)))
	return b
}

// What fails keeps no file open and none mapped.
func TestErrorsLeaveNoFileBehind(t *testing.T) {
	mapsFiles(t)
	open := func(t *testing.T, dir string) (*buffer.Buffer, string) {
		path := filepath.Join(dir, "data")
		b := must1(buffer.Open(path, nil))
		must1(b.Write(pattern(10_000)))
		return b, path
	}
	for name, f := range map[string]func(t *testing.T, dir string) error{
		"Open with less than there is": func(t *testing.T, dir string) error {
			b, path := open(t, dir)
			must(t, b.Close())
			_, err := buffer.Open(path, &buffer.OpenOptions{MaxBytes: 1})
			return err
		},
		"Open of a file that is open": func(t *testing.T, dir string) error {
			b, path := open(t, dir)
			_, err := buffer.Open(path, nil)
			must(t, b.Close())
			return err
		},
		"Open that cannot map": func(t *testing.T, dir string) error {
			b, path := open(t, dir)
			must(t, b.Close())
			defer failNext(vm.OpMapFile)()
			_, err := buffer.Open(path, nil)
			return err
		},
		"Close of a truncated file": func(t *testing.T, dir string) error {
			b, path := open(t, dir)
			must(t, os.Truncate(path, 5000))
			return b.Close()
		},
		"Close that cannot write": func(t *testing.T, dir string) error {
			b, _ := open(t, dir)
			defer failNext(vm.OpSync)()
			return b.Close()
		},
		"spilling without disk space": func(t *testing.T, dir string) error {
			b := buffer.New(alloctest.New(t), &buffer.Options{SpillAfter: 100, Dir: dir})
			must1(b.Write(pattern(100)))
			restore := failNext(vm.OpExtendFile)
			_, err := b.Write(pattern(100))
			restore()
			must(t, b.Close())
			return err
		},
		"spilling that cannot map": func(t *testing.T, dir string) error {
			b := buffer.New(alloctest.New(t), &buffer.Options{SpillAfter: 100, Dir: dir})
			must1(b.Write(pattern(100)))
			restore := failNext(vm.OpMapFile)
			_, err := b.Write(pattern(100))
			restore()
			must(t, b.Close())
			return err
		},
		"growing that cannot unmap": func(t *testing.T, dir string) error {
			b := spilled(t, dir)
			restore := failNext(vm.OpUnmapFile)
			err := b.Grow(100_000)
			restore()
			must(t, b.Close())
			return err
		},
		"a sort without disk space": func(t *testing.T, dir string) error {
			b := spilled(t, dir)
			r := must1(buffer.NewRecords(b, &buffer.RecordsOptions{RecordBytes: 10}))
			restore := failNext(vm.OpExtendFile)
			err := r.SortBy(context.Background(), nil, nil)
			restore()
			must(t, b.Close())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which closes what is forgotten
			dir := t.TempDir()
			if err := f(t, dir); err == nil {
				t.Error("it succeeds")
			}
			filetest.WantUnused(t, dir)
		})
	}
}

// A sort closes its temporary file.
func TestSortLeavesNoFileBehind(t *testing.T) {
	mapsFiles(t)
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	dir := t.TempDir()
	b := spilled(t, dir)
	r := must1(buffer.NewRecords(b, &buffer.RecordsOptions{RecordBytes: 10}))
	must(t, r.SortBy(context.Background(), nil, nil))
	must(t, b.Close())
	filetest.WantUnused(t, dir)
}

// A file that cannot be mapped again has the length that it had.
func TestFileThatCannotBeMappedKeepsItsLength(t *testing.T) {
	path := saved(t, pattern(1000))
	b := must1(buffer.Open(path, nil))
	restore := failNext(vm.OpMapFile)
	if err := b.Grow(100_000); err == nil {
		t.Error("growing succeeds")
	}
	restore()
	if info, err := os.Stat(path); err != nil || info.Size() != headerBytes+1000 {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
	wantData(t, b, pattern(1000))
	must(t, b.Close())
}
