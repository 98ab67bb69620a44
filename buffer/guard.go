// Guard: a fault in a mapped file becomes an error.

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

// Guard calls f, which may use the buffer's bytes. If f, on the same goroutine,
// touches a page of the buffer's file that is no longer there, Guard stops f there
// and returns an error: one that matches [io.ErrUnexpectedEOF] if somebody has
// truncated the file, else one that says which page could not be read or written. The
// error of a write to a buffer that is read-only matches [fs.ErrPermission]. Other
// panics pass. Without a file Guard only calls f.
//
// f must not hold a lock, or must release it by defer.
func (b *Buffer) Guard(f func()) error {
	b.mustBeOpen("buffer.Buffer.Guard")
	if f == nil {
		arg.Panicf("buffer.Buffer.Guard", "f is nil")
	}
	return b.guarded(func() error { f(); return nil })
}

// guarded calls f and returns its error, or that of a fault in the file.
func (b *Buffer) guarded(f func() error) (err error) {
	file := b.file
	if file == nil {
		return f()
	}
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		p := recover()
		if p == nil {
			return
		}
		fault, ok := p.(interface{ Addr() uintptr })
		if !ok || !file.maps(fault.Addr()) {
			panic(p)
		}
		err = file.faulted(fault.Addr())
	}()
	err = f()
	if errors.Is(err, syscall.EFAULT) { // a system call met the page
		if whole := file.mustBeWhole(); whole != nil {
			err = whole
		}
	}
	return err
}

// faulted returns the error of an access to addr.
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
	atomic.LoadUint32((*uint32)(vm.Pointer(f.addr + at&^3))) // which is always done
	return true
}

// mustBeWhole returns an error if somebody has truncated the file.
func (f *file) mustBeWhole() error {
	info, err := f.f.Stat()
	if err != nil {
		return f.failed(err)
	}
	if info.Size() < int64(f.size) {
		return f.failed(fmt.Errorf("somebody truncated the file from %d to %d bytes: %w", f.size, info.Size(), io.ErrUnexpectedEOF))
	}
	return nil
}
