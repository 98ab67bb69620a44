// Guard: turns a fault in a mapped file into an error.

package buffer

import (
	"errors"
	"syscall"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/vm"
)

// Guard calls f, which may use the buffer's bytes. If f, on the same goroutine, touches a page
// of the buffer's file that cannot be accessed, Guard ends f and returns an error. It matches
// [io.ErrUnexpectedEOF] if the file was truncated, and [fs.ErrPermission] if f wrote to a
// read-only buffer. Otherwise it names the page that could not be read or written. Guard passes
// all other panics. If the buffer has no file, it only calls f.
//
// A lock that f takes must be released by defer.
func (b *Buffer) Guard(f func()) error {
	b.mustBeOpen("buffer.Buffer.Guard")
	if f == nil {
		arg.Panicf("buffer.Buffer.Guard", "f is nil")
	}
	return b.guarded(func() error { f(); return nil })
}

// guarded calls f. It returns f's error, or an error for a fault in the file.
func (b *Buffer) guarded(f func() error) error {
	file := b.file
	if file == nil {
		return f()
	}
	err := vm.CatchFaults(f, func(addr uintptr) error {
		return file.failed(vm.FileFault(file.f, file.mapped(), !file.readOnly, addr))
	})
	if errors.Is(err, syscall.EFAULT) { // a system call touched the page
		if whole := file.mustBeWhole(); whole != nil {
			err = whole
		}
	}
	return err
}

// mustBeWhole returns an error if the file was truncated.
func (f *file) mustBeWhole() error { return f.failed(vm.MustBeWhole(f.f, f.size)) }
