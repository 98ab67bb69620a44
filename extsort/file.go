// Files: temporary ones and the output, past the page cache where that works.

package extsort

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/freehold-go/freehold/internal/file/atomicfile"
	"github.com/freehold-go/freehold/internal/file/tempfile"
)

// blockAlign is what direct reads and writes are multiples of, in memory and in
// the file.
const blockAlign = 4096

// A file is read and written past the page cache while direct is set.
type file struct {
	f      *os.File
	what   string // for errors
	direct atomic.Bool
}

// createTemp returns a new file in dir that ends with the process.
func createTemp(dir string) (*file, error) {
	f, err := tempfile.Create(dir, "freehold-sort-")
	if errors.Is(err, syscall.EMFILE) {
		err = fmt.Errorf("%w in this process (RLIMIT_NOFILE)", err)
	}
	if err != nil {
		return nil, fmt.Errorf("freehold: extsort: temporary file: %w", err)
	}
	t := &file{f: f, what: "temporary file in " + dir}
	t.goDirect()
	return t, nil
}

// goDirect makes f bypass the page cache if it can.
func (f *file) goDirect() { f.direct.Store(setDirect(f.f, true) == nil) }

func (f *file) writeAt(b []byte, at int64) error { return f.access(f.f.WriteAt, b, at) }

func (f *file) readAt(b []byte, at int64) error { return f.access(f.f.ReadAt, b, at) }

func (f *file) access(do func([]byte, int64) (int, error), b []byte, at int64) error {
	_, err := do(b, at)
	if errors.Is(err, syscall.EINVAL) && f.direct.Swap(false) && setDirect(f.f, false) == nil {
		_, err = do(b, at) // what the system said to direct access
	}
	if err != nil {
		return fmt.Errorf("freehold: extsort: %s: %w", f.what, systemError(err))
	}
	return nil
}

// systemError returns what the system said, without the name that the file does not
// have.
func systemError(err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// writeTo calls f with a writer to dst.
func (j *job) writeTo(dst io.Writer, f func(w *writer) error) error {
	if out, ok := dst.(*atomicfile.File); ok && !out.InPlace() {
		return j.writeToFile(out, f)
	}
	return writing(j.plan.output(), 0, func(b []byte, _ int64) error {
		n, err := dst.Write(b)
		if err == nil && n < len(b) {
			return fmt.Errorf("freehold: extsort: a Write of %d bytes wrote %d: %w", len(b), n, io.ErrShortWrite)
		}
		return err
	}, f)
}

// writeToFile calls f with a writer to the end of out. Much data is written past the
// page cache, which is faster than to leave it there.
func (j *job) writeToFile(out *atomicfile.File, f func(w *writer) error) error {
	from, err := out.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	file := &file{f: out.File, what: "writing " + out.Path()}
	if j.spilled() && from&(blockAlign-1) == 0 {
		file.goDirect()
	}
	direct := file.direct.Load()
	var size int64
	err = writing(j.plan.output(), from, file.writeAt, func(w *writer) error {
		err := f(w)
		size = w.size()
		if direct {
			w.pad()
		}
		return err
	})
	if err != nil || !direct {
		return err
	}
	if file.direct.Load() {
		err = setDirect(out.File, false)
	}
	return cmp.Or(err, out.Truncate(size))
}
