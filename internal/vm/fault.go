// Faults: turns an access to memory that the system cannot provide into an error.

package vm

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"sync/atomic"
	"unsafe"
)

// CatchFaults calls f and returns its error. If f, on the same goroutine, accesses an address that
// faults, f ends there by a panic, which runs its deferred calls. CatchFaults then returns
// faulted(addr). If that is nil, the fault is not the caller's, and the panic goes on. So do all
// other panics.
func CatchFaults(f func() error, faulted func(addr uintptr) error) (err error) {
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		p := recover()
		if p == nil {
			return
		}
		if fault, ok := p.(interface{ Addr() uintptr }); ok {
			err = faulted(fault.Addr())
		}
		if err == nil {
			panic(p)
		}
	}()
	return f()
}

// FileFault returns the error for a fault at addr, or nil if addr is not in mapped, the bytes of f
// that MapFile has mapped. The error matches [fs.ErrPermission] for a write to a mapping that is not
// writable, and [io.ErrUnexpectedEOF] if the file was truncated. Otherwise it names the page.
func FileFault(f *os.File, mapped []byte, writable bool, addr uintptr) error {
	at := addr - uintptr(unsafe.Pointer(unsafe.SliceData(mapped)))
	if at >= uintptr(len(mapped)) {
		return nil
	}
	if !writable && readable(addr) {
		return fmt.Errorf("a write to byte %d of the file, which is mapped read-only: %w", at, fs.ErrPermission)
	}
	if err := MustBeWhole(f, len(mapped)); err != nil {
		return err
	}
	if writable {
		return fmt.Errorf("the page with byte %d of the file could not be read or written", at)
	}
	return fmt.Errorf("the page with byte %d of the file could not be read", at)
}

// MustBeWhole returns an error that matches [io.ErrUnexpectedEOF] if f has fewer than size bytes.
func MustBeWhole(f *os.File, size int) error {
	info, err := f.Stat()
	if err == nil && info.Size() < int64(size) {
		err = fmt.Errorf("the file was truncated from %d to %d bytes: %w", size, info.Size(), io.ErrUnexpectedEOF)
	}
	return err
}

// readable reports whether the word with addr can be read.
func readable(addr uintptr) (ok bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { ok = recover() == nil }()
	atomic.LoadUint32((*uint32)(Pointer(addr &^ 3))) // atomic, so the compiler keeps it
	return true
}
