package extsort

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// What is left in the block of a run's writer is written when the worker ends.
func TestLastWriteOfARunFails(t *testing.T) {
	makeRuns := func() (size int64, err error) {
		j := freehold.Must(newJob("extsort.Sort", &Options{MemoryBytes: MinMemoryBytes, Parallel: 1, TempDirs: []string{t.TempDir()}}))
		defer j.close()
		err = j.makeRuns(t.Context(), []io.Reader{strings.NewReader(strings.Repeat("line\n", 100_000))})
		info, statErr := j.files[0].Stat()
		if statErr != nil {
			t.Fatal(statErr)
		}
		return info.Size(), err
	}
	size := freehold.Must(makeRuns())
	var before unix.Rlimit
	filetest.Must(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &before))
	limit := before
	limit.Cur = uint64(size - blockAlign)
	filetest.Must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
	defer unix.Setrlimit(unix.RLIMIT_FSIZE, &before)
	if got, err := makeRuns(); !errors.Is(err, syscall.EFBIG) || got != size-blockAlign {
		t.Errorf("%v, and the file has %d bytes of %d", err, got, size)
	}
}
