package disk

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// More goroutines than an io_uring has entries read at the same time, and each gets its bytes.
func TestUring(t *testing.T) {
	f := freehold.Must(os.Create(filepath.Join(t.TempDir(), "file")))
	defer f.Close()
	uring, err := newUring(f, false)
	if err != nil {
		t.Skip(err)
	}
	const goroutines, rounds = 600, 20
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			want, got := make([]byte, 100+g), make([]byte, 100+g)
			for round := range rounds {
				for i := range want {
					want[i] = byte(g + i*round)
				}
				off := int64(g) * 1000
				if n, err := f.WriteAt(want, off); n != len(want) || err != nil {
					t.Errorf("written %d of %d bytes: %v", n, len(want), err)
				}
				if n, err := uring.ReadAt(got, off); n != len(got) || err != nil || !bytes.Equal(got, want) {
					t.Errorf("read %d of %d bytes: %v", n, len(got), err)
				}
			}
		})
	}
	wg.Wait()
	end := int64(goroutines-1)*1000 + 100 + goroutines - 1
	if n, err := uring.ReadAt(make([]byte, 100), end-10); n != 10 || err != io.EOF {
		t.Errorf("%d bytes and %v before the end of the file, want 10 and EOF", n, err)
	}
	if _, err := uring.ReadAt(make([]byte, 1), -2); err == nil {
		t.Error("a read at a negative offset succeeds")
	}
	filetest.Must(t, uring.Close())
}

// A store that is closed leaves no goroutine and no descriptor.
func TestNothingIsLeft(t *testing.T) {
	descriptors := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(entries)
	}
	o := small(t, 16)
	once := func() {
		x, _ := open(t, o)
		x.check(t, x.fill(t, 0, 4, 500))
		filetest.Must(t, x.s.Close(x.save))
	}
	once() // the poller has descriptors of its own
	goroutines, fds := runtime.NumGoroutine(), descriptors()
	for range 10 {
		once()
	}
	for runtime.NumGoroutine() > goroutines { // the last may be about to return
		runtime.Gosched()
	}
	if n := descriptors(); n > fds {
		t.Errorf("%d descriptors, before %d", n, fds)
	}
}
