// Memory from the operating system: the one package that talks to it.
//
// A page goes through these states, always in whole pages:
//
//	            Commit             Decommit
//	reserved ------------> committed ------> decommitted
//	   ^                    |  ^  ^               |  |
//	   +------ Revoke ------+  |  +---- Commit ---+  |
//	   +------ Revoke ---------|---------------------+
//	                           Renew (from any state)
//
// Nothing is ever unmapped. A live Go variable that holds an address kills the
// process once the Go heap grows into it, so a range stays ours for good.
//
// seam.go is what tests see of each call; the anonymous memory of this page is
// in vm_unix.go, vm_windows.go and vm_go.go, mapped files in file.go.

// Package vm is virtual memory: reserve, commit, decommit, move, map a file.
//
// Sizes are bytes and, like addresses, uintptr. A range [addr, addr+size) is
// made of whole pages and lies inside one reservation or one mapped file; a
// call that breaks this is a bug of the caller and panics. What the system
// refuses is an error, an [*Error], and has changed nothing unless the function
// says otherwise. All functions may be called by several goroutines at once,
// on ranges that do not overlap.
package vm

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"unsafe"
)

// HugePageBytes is the size of a huge page: decommitting less splits one.
const HugePageBytes = 2 << 20

// ErrNoMemory is matched by errors that say the system has no memory, address
// space, mappings or lockable pages left. Trying again later may work.
var ErrNoMemory = errors.New("no memory")

// ErrUnsupported is matched by errors that say this system has no such call,
// or not for this range. Trying again will not help; nothing has changed.
var ErrUnsupported = fmt.Errorf("%w", errors.ErrUnsupported)

// An Error is a call that the system refused.
type Error struct {
	Op   Op
	Addr uintptr // 0 if the range had none yet
	Size uintptr // bytes
	Err  error   // what the system said
}

func (e *Error) Error() string {
	if e.Addr == 0 {
		return fmt.Sprintf("freehold: vm: %v of %d bytes: %v", e.Op, e.Size, e.Err)
	}
	return fmt.Sprintf("freehold: vm: %v of %d bytes at %#x: %v", e.Op, e.Size, e.Addr, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is the class that e belongs to.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrNoMemory:
		return outOfMemory(e.Err)
	case ErrUnsupported:
		return errors.Is(e.Err, errors.ErrUnsupported)
	}
	return false
}

var pageBytes = systemPageBytes()

// PageBytes returns the size of the system's pages, a power of two.
func PageBytes() uintptr { return pageBytes }

// Pointer turns an off-heap address into a pointer. It is the one conversion:
// off-heap memory does not move and the collector ignores it.
//
// Precondition: addr came from Reserve or MapFile, and the pointer is not used
// on memory that is not committed.
func Pointer(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

// bytesAt is a range as a slice: the same precondition.
func bytesAt(addr, size uintptr) []byte { return unsafe.Slice((*byte)(Pointer(addr)), size) }

// MaxReserve returns the largest reservation worth asking for first, a power of
// two. Where the process's address space has a limit it is a quarter of what is
// left at most, since Go's own heap needs addresses too. The system may still
// refuse it.
func MaxReserve() uintptr {
	quarter := addressesLeft() / 4
	if quarter >= maxReserve {
		return maxReserve
	}
	return 1 << bits.Len(uint(quarter)) / 2
}

// Reserve takes size bytes of address space at a multiple of align, a power of
// two. Nobody else gets them, nothing may be accessed, and no memory is used.
// They are never given back: the caller keeps and recycles them.
//
// Up to align bytes more are taken, and kept, to reach the alignment.
func Reserve(size, align uintptr) (addr uintptr, err error) {
	if size == 0 || size&(pageBytes-1) != 0 || align&(align-1) != 0 || align < pageBytes || size+align < size || size+align > math.MaxInt {
		panic(fmt.Sprintf("freehold: vm: reserve of %d bytes at a multiple of %d: not whole pages", size, align))
	}
	err = do(OpReserve, 0, size, func(_, size uintptr) error {
		addr, err = reserve(size, align)
		return err
	})
	return addr, err
}

// Commit makes a range readable and writable. Pages that were never committed,
// or were decommitted since, read zero; the others keep their contents. Memory
// that mlockall locks becomes resident as it is touched, on Linux from 5.4 on.
func Commit(addr, size uintptr) error {
	check(OpCommit, addr, size)
	return do(OpCommit, addr, size, commit)
}

// Decommit drops a range's contents and returns its physical memory at once.
// Commit comes before the next use, except where [HolesReadZero]. Pages that
// could not be accessed may get access by it.
//
// On an error the range is still committed, its contents as before or zero.
func Decommit(addr, size uintptr) error {
	check(OpDecommit, addr, size)
	return do(OpDecommit, addr, size, decommit)
}

// Revoke is Decommit, after which any access faults until Commit. Advice, names
// and locks may be gone too. Where memory is [GoBacked] nothing faults, and the
// range reads zero.
func Revoke(addr, size uintptr) error {
	check(OpRevoke, addr, size)
	return do(OpRevoke, addr, size, revoke)
}

// Renew makes a range committed and zero, whatever it was, and one mapping
// again where Move and Advise had cut it into several. Advice, names and locks
// may be gone.
//
// On an error the range may be revoked, its contents dropped.
func Renew(addr, size uintptr) error {
	check(OpRenew, addr, size)
	if err := do(OpRenew, addr, size, renew); err != nil {
		return err
	}
	return do(OpCommit, addr, size, commit)
}

// Move moves the pages of [src, src+size) to dst without copying a byte. What
// dst held is gone, and src reads zero and stays committed. Advice moves along.
//
// Where the system cannot do it the error matches [ErrUnsupported], and dst is
// as before. After another error each page of dst is as before or committed
// and zero; only when memory is that short, it may have lost its access. After
// any error src is as before: Commit dst and copy.
//
// Precondition: both ranges lie in reservations, do not overlap, and src is
// committed.
func Move(dst, src, size uintptr) error {
	check(OpMove, dst, size)
	check(OpMove, src, size)
	if dst < src+size && src < dst+size {
		panic(fmt.Sprintf("freehold: vm: move of %d bytes from %#x to %#x: the ranges overlap", size, src, dst))
	}
	return do(OpMove, dst, size, func(dst, size uintptr) error { return move(dst, src, size) })
}

// Resident tells which pages of a range are in physical memory: the lowest bit
// of pages[i] is set if page i is. A page that is not may be in swap. The answer
// may be out of date when the call returns. The error matches [ErrUnsupported]
// where the system does not say.
//
// Precondition: pages has one element for each page.
func Resident(addr, size uintptr, pages []byte) error {
	check(OpResident, addr, size)
	if uintptr(len(pages)) != size/pageBytes {
		panic(fmt.Sprintf("freehold: vm: %d elements for the pages of %d bytes", len(pages), size))
	}
	return do(OpResident, addr, size, func(addr, size uintptr) error { return resident(addr, size, pages) })
}

// Lock keeps a range in physical memory, out of swap, until Unlock. Commit
// comes before, and Unlock before Decommit, which Linux before 5.18 refuses on
// locked memory. Locks do not nest.
func Lock(addr, size uintptr) error {
	check(OpLock, addr, size)
	return do(OpLock, addr, size, lock)
}

// Unlock takes a Lock back.
func Unlock(addr, size uintptr) error {
	check(OpUnlock, addr, size)
	return do(OpUnlock, addr, size, unlock)
}

// Name shows a range as "freehold: name" in /proc/self/maps, where the system
// can do that. Ranges of different names are different mappings.
func Name(addr, size uintptr, name string) {
	check(OpName, addr, size)
	_ = do(OpName, addr, size, func(addr, size uintptr) error { return setName(addr, size, "freehold: "+name) })
}

// check panics unless [addr, addr+size) is made of whole pages.
func check(op Op, addr, size uintptr) {
	if addr == 0 || size == 0 || (addr|size)&(pageBytes-1) != 0 || addr+size < addr || size > math.MaxInt {
		panic(fmt.Sprintf("freehold: vm: %v of %d bytes at %#x: not whole pages", op, size, addr))
	}
}

// roundUp rounds n up to a multiple of align, a power of two.
func roundUp(n, align uintptr) uintptr { return (n + align - 1) &^ (align - 1) }
