// Guard: turns a fault in a mapped file into an error.

package buffer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime/debug"
	"sync/atomic"
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
		if !file.maps(addr) {
			return nil
		}
		return file.faulted(addr)
	})
	if errors.Is(err, syscall.EFAULT) { // a system call touched the page
		if whole := file.mustBeWhole(); whole != nil {
			err = whole
		}
	}
	return err
}

// faulted returns the error for a fault at addr.
func (f *file) faulted(addr uintptr) error {
	if err := f.mustBeWhole(); err != nil {
		return err
	}
	at := addr - f.addr
	switch {
	case !f.readOnly:
		return f.failed(fmt.Errorf("the page with byte %d of the file could not be read or written", at))
	case f.readable(at):
		return f.failed(fmt.Errorf("a write to byte %d of the file, and the buffer is read-only: %w", at, fs.ErrPermission))
	}
	return f.failed(fmt.Errorf("the page with byte %d of the file could not be read", at))
}

// readable reports whether byte at of the mapping can be read.
func (f *file) readable(at uintptr) (ok bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { ok = recover() == nil }()
	atomic.LoadUint32((*uint32)(vm.Pointer(f.addr + at&^3))) // atomic, so the compiler keeps it
	return true
}

// mustBeWhole returns an error if the file was truncated.
func (f *file) mustBeWhole() error {
	info, err := f.f.Stat()
	if err != nil {
		return f.failed(err)
	}
	if info.Size() < int64(f.size) {
		return f.failed(fmt.Errorf("the file was truncated from %d to %d bytes: %w", f.size, info.Size(), io.ErrUnexpectedEOF))
	}
	return nil
}
