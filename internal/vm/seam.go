// Fault injection: every system call passes here first, so that tests can make the
// Nth one fail. (Injection by strace kills the Go runtime instead.)

package vm

import (
	"sync/atomic"
	"syscall"
)

// An Op is a kind of system call.
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
	OpName
	OpExtendFile
	OpMapFile
	OpUnmapFile
	OpSync
	OpSyncFile
	OpFence // for PrepareFence too
	OpProtect
	OpHide // in CommitSecret; an OpCommit and an OpLock follow if it fails
	OpLock
	OpPlace // for AllowedNodes too
	NumOps  = int(iota)
)

var opNames = [NumOps]string{"reserve", "commit", "decommit", "revoke", "renew", "move", "ask for residency", "advise",
	"name", "extend file", "map file", "unmap file", "sync", "sync file", "fence",
	"protect", "hide", "lock", "place"}

func (op Op) String() string { return opNames[op] }

var fault atomic.Pointer[func(Op) error]

// SetFault installs f, which is called before every system call, from any
// goroutine. If f returns an error, it replaces the system call and its result.
// Restore reinstalls the previous function. For tests.
func SetFault(f func(op Op) error) (restore func()) {
	before := fault.Swap(&f)
	return func() { fault.Store(before) }
}

// FailNth returns a function for [SetFault] that fails the nth call, counted from
// 1, and unless once is set all later ones.
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

// Refuse makes every call of one kind fail with ENOMEM, until restore. For tests.
func Refuse(refused Op) (restore func()) {
	return SetFault(func(op Op) error {
		if op == refused {
			return syscall.ENOMEM
		}
		return nil
	})
}

// enter returns the injected error of a call, if any.
func enter(op Op) error {
	if f := fault.Load(); f != nil {
		return (*f)(op)
	}
	return nil
}

// maxInterrupts limits the retries of a call after EINTR.
const maxInterrupts = 100

// do makes a system call by f, and wraps its error with the arguments.
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
