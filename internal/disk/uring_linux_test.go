//go:build amd64 || arm64 || loong64 || ppc64le || riscv64

package disk

import (
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/test/filetest"
	"golang.org/x/sys/unix"
)

// One call submits several reads. If the kernel refuses the call, each of them gets the error, and
// the io_uring goes on.
func TestSubmitTogether(t *testing.T) {
	const text = "abcdefgh"
	path := filepath.Join(t.TempDir(), "file")
	filetest.Must(t, os.WriteFile(path, []byte(text), 0o600))
	f := freehold.Must(os.Open(path))
	defer f.Close()
	for _, direct := range []bool{false, true} { // the other system call, whatever f is
		opened, err := newUring(f, direct)
		if err != nil {
			t.Skip(err)
		}
		r := opened.(*uring)
		got := make([]byte, len(text))
		submit := func() (indexes []uint32) {
			r.submitting.Lock()
			defer r.submitting.Unlock()
			for i := range got {
				n := <-r.free
				indexes = append(indexes, n)
				r.push(submission{op: opRead, fd: r.target, offset: uint64(i), addr: uint64(uintptr(unsafe.Pointer(&got[i]))), length: 1, user: uint64(n)})
			}
			r.enter()
			if n := r.queued(); n > 0 {
				t.Fatalf("%d entries are left", n)
			}
			return indexes
		}
		check := func(want int32, indexes []uint32) {
			t.Helper()
			for _, i := range indexes {
				if n := <-r.results[i]; n != want {
					t.Errorf("the result is %d, want %d", n, want)
				}
				r.free <- i
			}
		}
		fd := r.fd
		r.fd = -1
		check(-int32(unix.EBADF), submit())
		r.fd = fd
		check(1, submit())
		if string(got) != text {
			t.Errorf("read %q, want %q", got, text)
		}
		filetest.Must(t, r.Close())
	}
}
