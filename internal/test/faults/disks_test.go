// Disks with defects or without features.

//go:build linux

package faults

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/extsort"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// On a read-only disk each kind of writer returns an error.
func TestReadOnlyDisk(t *testing.T) {
	if !Isolated(t) {
		return
	}
	room := NewDisk(t)
	file, in := filepath.Join(room.Dir, "file"), filepath.Join(room.Dir, "in")
	b := freehold.Must(buffer.Open(file, nil))
	filetest.Must(t, b.Close())
	_, text := someInput(Random(0))
	room.Limit(t, 1<<30)
	filetest.Must(t, os.WriteFile(in, text, 0o600))
	filetest.Must(t, unix.Mount("none", room.Dir, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""))

	b = buffer.New(alloctest.New(t), &buffer.Options{Dir: room.Dir, SpillAfter: 1000})
	defer b.Close()
	freehold.Must(b.Write(text[:1000]))
	_, spilled := b.Write(text[:1000])
	Same(t, "the buffer", b.Bytes(), text[:1000])
	_, opened := buffer.Open(file, nil)
	_, created := buffer.Open(file+"2", nil)
	temp := extsort.Sort(context.Background(), io.Discard, smallSort(t, room.Dir), bytes.NewReader(text))
	output := extsort.SortFile(context.Background(), filepath.Join(room.Dir, "out"), smallSort(t, t.TempDir()), in)
	onto := extsort.SortFile(context.Background(), in, smallSort(t, t.TempDir()), in)
	for what, err := range map[string]error{"a buffer that spills": spilled, "Open": opened, "Open of a new file": created,
		"temporary files": temp, "an output": output, "an output that is there": onto} {
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s: %v, want %q", what, err, syscall.EROFS)
		}
	}
	filetest.Must(t, extsort.SortFile(context.Background(), filepath.Join(t.TempDir(), "out"), smallSort(t, t.TempDir()), in))
}

// smallSort returns options of a sort that needs temporary files.
func smallSort(t *testing.T, dir string) *extsort.Options {
	return &extsort.Options{MemoryBytes: extsort.MinMemoryBytes, Parallel: 1, TempDirs: []string{dir}, Parent: alloctest.New(t)}
}

// ramfs has neither fallocate nor direct access. Everything works without them.
func TestDiskWithoutAllocation(t *testing.T) {
	if !Isolated(t) {
		return
	}
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "ramfs", 0, ""); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	f := freehold.Must(os.Create(filepath.Join(dir, "probe")))
	if err := unix.Fallocate(int(f.Fd()), 0, 0, 1); !errors.Is(err, errors.ErrUnsupported) {
		t.Skip("SKIPPED: ramfs allocates: ", err)
	}
	filetest.Must(t, f.Close())
	filetest.Must(t, os.Remove(f.Name()))

	r := Random(0)
	b := buffer.New(freehold.Default(), &buffer.Options{Dir: dir, SpillAfter: 1})
	for b.Len() < 3<<20 {
		_ = freehold.Must(appendTo(b, r, Noise()[b.Len():]))
	}
	Same(t, "the buffer", b.Bytes(), Noise()[:b.Len()])
	filetest.Must(t, b.Close())

	file := filepath.Join(dir, "file")
	b = freehold.Must(buffer.Open(file, nil))
	for b.Len() < 3<<20 {
		_ = freehold.Must(appendTo(b, r, Noise()[b.Len():]))
	}
	n := b.Len()
	filetest.Must(t, b.Close())
	b = freehold.Must(buffer.Open(file, nil))
	Same(t, "the file", b.Bytes(), Noise()[:n])
	filetest.Must(t, b.Close())

	format, text := someInput(r)
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	filetest.Must(t, os.WriteFile(in, text, 0o600))
	o := smallSort(t, dir)
	o.Format = format
	filetest.Must(t, extsort.SortFile(context.Background(), out, o, in))
	got := freehold.Must(os.ReadFile(out))
	Same(t, "the output", got, sorted(t, o, text))
}

// unguarded reads a truncated file without Guard.
func unguarded() error {
	path := os.Getenv(pathOf)
	b, err := buffer.Open(path, nil)
	if err != nil {
		return err
	}
	if err := os.Truncate(path, 5000); err != nil {
		return err
	}
	if err := b.Guard(func() { runtime.KeepAlive(bytes.Clone(b.Bytes())) }); !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if _, err := os.Stdout.WriteString("guarded\n"); err != nil {
		return err
	}
	runtime.KeepAlive(bytes.Clone(b.Bytes()))
	return nil
}

// A process that reads a truncated file through Guard goes on. Without Guard it dies, as package
// buffer's documentation says.
func TestTruncatedFileInAProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	b := freehold.Must(buffer.Open(path, nil))
	freehold.Must(b.Write(Noise()[:100_000]))
	filetest.Must(t, b.Close())
	cmd, told := child(t, "unguarded", path, 0)
	said := freehold.Must(io.ReadAll(told))
	_ = cmd.Wait()
	if string(said) != "guarded\n" || cmd.ProcessState.Success() || !bytes.Contains(cmd.Stderr.(*bytes.Buffer).Bytes(), []byte("fault")) {
		t.Errorf("%q, %v, %s", said, cmd.ProcessState, cmd.Stderr)
	}
}
