package spill

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/freehold-go/freehold"
)

// Temporary files are direct if their directory's file system supports it.
func TestTemporaryFilesAreDirect(t *testing.T) {
	dir := t.TempDir()
	other := freehold.Must(os.CreateTemp(dir, ""))
	defer other.Close()
	f := freehold.Must(Create("extsort", dir))
	defer f.Close()
	if can := setDirect(other, true) == nil; f.Direct() != can {
		t.Errorf("direct: %v, want %v", !can, can)
	}
}

// A file system may refuse direct access only at the first read or write.
func TestDirectAccessEnds(t *testing.T) {
	f := freehold.Must(Create("extsort", t.TempDir()))
	defer f.Close()
	if !f.Direct() {
		t.Skip("no direct access")
	}
	calls := 0
	refused := func(b []byte, _ int64) (int, error) {
		if calls++; f.Direct() {
			return 0, &os.PathError{Op: "write", Err: syscall.EINVAL}
		}
		return len(b), nil
	}
	for range 2 {
		if err := f.access(refused, nil, 0); err != nil {
			t.Error(err)
		}
	}
	if calls != 3 || f.Direct() {
		t.Errorf("%d calls, want a second one after the first refusal alone", calls)
	}
	if _, err := f.File.WriteAt([]byte("unaligned"), 3); err != nil {
		t.Errorf("the file is still direct: %v", err)
	}
	if err := f.ReadAt(make([]byte, 8), 100); !errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "temporary file in ") {
		t.Errorf("%v, want io.EOF of the temporary file", err)
	}
}
