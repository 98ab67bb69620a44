// The seam: every call on the system passes here first, so that tests can make
// the Nth of them fail. (Injection by strace kills the Go runtime instead.)

package vm

import (
	"sync/atomic"
	"syscall"
)

// An Op is a kind of call on the system.
type Op uint8

const (
	OpReserve Op = iota
	OpCommit
	OpDecommit
	OpRevoke
	OpRenew // the new mapping; an OpCommit follows
	OpMove
	OpResident
	OpAdvise
	OpLock
	OpUnlock
	OpName
	OpMapFile
	OpUnmapFile
	OpSync
	NumOps = int(iota)
)

var opNames = [NumOps]string{"reserve", "commit", "decommit", "revoke", "renew", "move", "ask for residency", "advise",
	"lock", "unlock", "name", "map file", "unmap file", "sync"}

func (op Op) String() string { return opNames[op] }

var fault atomic.Pointer[func(Op) error]

// SetFault has f asked before every call, from any goroutine. An error of f's
// is returned as if the system had said it, and the system is not called.
// Restore puts back what was installed before. For tests.
func SetFault(f func(op Op) error) (restore func()) {
	before := fault.Swap(&f)
	return func() { fault.Store(before) }
}

// FailNth returns a function for [SetFault] that fails the nth call, n = 1
// being the first: that one alone if once, else from there on.
func FailNth(n int, once bool, err error) func(op Op) error {
	var calls atomic.Int64
	return func(Op) error {
		c := calls.Add(1)
		if c == int64(n) || !once && c > int64(n) {
			return err
		}
		return nil
	}
}

// enter is the way into the system; it fails if a test wants it to.
func enter(op Op) error {
	if f := fault.Load(); f != nil {
		return (*f)(op)
	}
	return nil
}

// maxInterrupts bounds how often one call is tried again after EINTR.
const maxInterrupts = 100

// do calls the system, by f, and says what was asked for in the error.
func do(op Op, addr, size uintptr, f func(addr, size uintptr) error) error {
	for n := 0; ; n++ {
		err := enter(op)
		if err == nil {
			err = f(addr, size)
		}
		if err == nil {
			return nil
		}
		if err != syscall.EINTR || n == maxInterrupts {
			return &Error{Op: op, Addr: addr, Size: size, Err: err}
		}
	}
}
