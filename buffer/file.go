// File: a mapped file that holds a buffer's data.
//
//	| header, in a file of Open | data | free |
//	addr                                      addr + size
//
// vm.ExtendFile allocates disk space for all of size, if it can, before the file is mapped.

package buffer

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"github.com/freehold-go/freehold/internal/file/filelock"
	"github.com/freehold-go/freehold/internal/file/tempfile"
	"github.com/freehold-go/freehold/internal/vm"
)

type file struct {
	f      *os.File
	name   string  // for errors
	addr   uintptr // of the mapping; 0 if there is none
	size   int     // of the mapping; the file is longer if a process was killed
	header int     // bytes before the data; 0 in a temporary file

	committed int   // the length in the header
	promised  int64 // the greatest length that the header on disk may have
	readOnly  bool
}

// newTemp returns a temporary file in dir with data. The file is not mapped yet.
func newTemp(dir string, data []byte) (*file, error) {
	t := &file{name: "temporary file in " + cmp.Or(dir, os.TempDir())}
	var err error
	if t.f, err = tempfile.Create(dir, "freehold-"); err != nil {
		return nil, t.failed(err)
	}
	if err = vm.ExtendFile(t.f, 0, int64(len(data))); err == nil {
		_, err = t.f.WriteAt(data, 0)
	}
	if err != nil {
		_ = t.close()
		return nil, t.failed(err)
	}
	t.size = len(data)
	return t, nil
}

// failed returns err, if there is one, with the file's name.
func (f *file) failed(err error) error {
	if err == nil {
		return nil
	}
	var at *os.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("freehold: buffer: %s: %w", f.name, err)
}

// mapped returns the mapping.
func (f *file) mapped() []byte {
	if f.addr == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(vm.Pointer(f.addr)), f.size)
}

// capacity returns the mapping without the header.
func (f *file) capacity() []byte { return f.mapped()[f.header:] }

// setCap grows b's capacity in the file to size bytes. On an error the file and b
// are unchanged.
func (f *file) setCap(b *Buffer, size int) error {
	if err := f.mustBeWhole(); err != nil {
		return err
	}
	to := f.header + size
	if err := vm.ExtendFile(f.f, int64(f.size), int64(to)); err != nil {
		return f.failed(err)
	}
	addr, err := vm.MapFile(f.f, uintptr(to), true)
	if err != nil {
		_ = f.cut(f.size)
		return f.failed(err)
	}
	if err := f.unmap(); err != nil {
		_ = vm.UnmapFile(addr, uintptr(to))
		return f.failed(err)
	}
	f.addr, f.size = addr, to
	b.mem = f.capacity()
	return nil
}

func (f *file) unmap() error {
	if f.addr == 0 {
		return nil
	}
	if err := vm.UnmapFile(f.addr, uintptr(f.size)); err != nil {
		return err
	}
	f.addr = 0
	return nil
}

// trim frees the file's space beyond b's data.
func (f *file) trim(b *Buffer) {
	if f.readOnly {
		return
	}
	size := f.header + b.n
	if size == 0 {
		if f.unmap() != nil {
			return
		}
	} else if size != f.size {
		addr, err := vm.MapFile(f.f, uintptr(size), true)
		if err != nil {
			return
		}
		if f.unmap() != nil {
			_ = vm.UnmapFile(addr, uintptr(size))
			return
		}
		f.addr = addr
	}
	f.size = size
	b.mem = f.capacity()
	_ = f.cut(size) // fails on Windows, where Close cuts the file
}

// cut shortens the file to size bytes. If the header on disk may have a greater length, it
// writes the header first: else a loss of power may leave the old header with the shorter file.
func (f *file) cut(size int) error {
	if f.header != 0 && int64(size) < headerBytes+f.promised {
		if err := f.flush(headerBytes); err != nil {
			return err
		}
	}
	return f.f.Truncate(int64(size))
}

// close unmaps, unlocks and closes the file, which removes a temporary one.
func (f *file) close() error {
	err := f.unmap()
	if f.header != 0 {
		filelock.Unlock(f.f)
	}
	if closeErr := f.f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// cutAndClose is close, but first cuts a writable file of Open to n bytes of data.
func (f *file) cutAndClose(n int) error {
	if f.header == 0 || f.readOnly {
		return f.close()
	}
	err := f.unmap()
	if err == nil {
		err = f.f.Truncate(int64(f.header + n))
	}
	if err == nil {
		err = vm.SyncFile(f.f)
	}
	if closeErr := f.close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return f.failed(err)
	}
	return nil
}
