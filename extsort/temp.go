// Temporary files: they have no name, so they end with the process.

package extsort

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/freehold-go/freehold/internal/tempfile"
)

// blockAlign is what direct reads and writes are multiples of, in memory and in
// the file.
const blockAlign = 4096

// A file is read and written past the page cache where the system can.
type file struct {
	f      *os.File
	dir    string
	direct atomic.Bool
}

// createTemp returns a new file in dir. It has no name, or none that outlives the
// process where the system allows it.
func createTemp(dir string) (*file, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	f, err := tempfile.Create(dir, "freehold-sort-")
	if err != nil {
		return nil, fmt.Errorf("freehold: extsort: temporary file: %w", err)
	}
	t := &file{f: f, dir: dir}
	t.direct.Store(setDirect(f, true) == nil)
	return t, nil
}

func (f *file) writeAt(b []byte, at int64) error {
	_, err := f.f.WriteAt(b, at)
	if err != nil && f.giveUpDirect(err) {
		_, err = f.f.WriteAt(b, at)
	}
	if err != nil {
		return fmt.Errorf("freehold: extsort: temporary file in %s: %w", f.dir, systemError(err))
	}
	return nil
}

func (f *file) readAt(b []byte, at int64) error {
	_, err := f.f.ReadAt(b, at)
	if err != nil && f.giveUpDirect(err) {
		_, err = f.f.ReadAt(b, at)
	}
	if err != nil {
		return fmt.Errorf("freehold: extsort: temporary file in %s: %w", f.dir, systemError(err))
	}
	return nil
}

// giveUpDirect reports whether err may be due to direct access, which it ends.
func (f *file) giveUpDirect(err error) bool {
	return errors.Is(err, syscall.EINVAL) && f.direct.Swap(false) && setDirect(f.f, false) == nil
}

// systemError returns what the system said, without the name that the file no
// longer has.
func systemError(err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
