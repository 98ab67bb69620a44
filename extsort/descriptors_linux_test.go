package extsort_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/extsort"
)

// onRead calls f before the first Read.
type onRead struct {
	io.Reader
	f func()
}

func (r *onRead) Read(b []byte) (int, error) {
	if r.f != nil {
		r.f()
		r.f = nil
	}
	return r.Reader.Read(b)
}

// A sort has as few workers as there are files that the process may open, though others
// open files meanwhile. Workers merge runs to fewer, which takes the most files.
func TestSortWithFewDescriptors(t *testing.T) {
	const spare, workers, times = 8, 2, 8 // so large that runs are merged to fewer
	text := strings.Repeat(large(), times)
	var before unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	lowest := freehold.Must(unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0))
	unix.Close(lowest)
	few := before
	few.Cur = uint64(lowest + spare + 2*workers)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Skip(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &before)

	var opened []int
	// open leaves so many descriptors.
	open := func(leave int) {
		for {
			fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				break
			}
			opened = append(opened, fd)
		}
		for range leave {
			unix.Close(opened[len(opened)-1])
			opened = opened[:len(opened)-1]
		}
	}
	defer func() {
		for _, fd := range opened {
			unix.Close(fd)
		}
	}()
	o := smallest(t)
	o.MemoryBytes, o.Parallel = 4*extsort.MinMemoryBytes, 4
	merges := 0
	o.Progress = func(p extsort.Progress) {
		if p.Phase == extsort.PhaseMerging {
			merges++
		}
	}
	var got bytes.Buffer
	in := strings.NewReader(text)
	if err := extsort.Sort(context.Background(), &got, o, &onRead{in, func() { open(2 * workers) }}); err != nil {
		t.Error(err)
	}
	if merges == 0 {
		t.Error("no runs were merged to fewer")
	}
	lines := strings.SplitAfter(text, "\n")
	slices.Sort(lines)
	same(t, got.String(), strings.Join(lines, ""))

	open(0)
	in.Seek(0, io.SeekStart)
	err := extsort.Sort(context.Background(), io.Discard, o, in)
	if !errors.Is(err, syscall.EMFILE) || !strings.Contains(err.Error(), "RLIMIT_NOFILE") {
		t.Errorf("without a descriptor: %v", err)
	}
}
