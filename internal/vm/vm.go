// Virtual memory: reserve, commit and decommit.
//
// States of a page:
//
//	            Commit             Decommit
//	reserved ------------> committed ------> decommitted
//	   ^                    |  ^  ^               |  |
//	   +------ Revoke ------+  |  +---- Commit ---+  |
//	   +------ Revoke ---------|---------------------+
//	                           Renew (from any state)
//
// Nothing is ever unmapped. If the Go heap grew into a range while a live Go variable still held
// an address of it, the process would crash. So each range is kept for good.
//
// seam.go injects faults for tests. The system calls are in vm_unix.go,
// vm_windows.go and vm_go.go, mapped files in file.go.

// Package vm manages virtual memory: reserve, commit, decommit, move, map a file. It
// is the only package that calls the operating system for memory.
//
// Sizes are bytes and, like addresses, uintptr. A range [addr, addr+size) consists
// of whole pages inside one reservation or one mapped file; anything else is a bug
// of the caller and panics. If the system refuses a call, the error is an [*Error]
// and nothing has changed unless the function says otherwise. All functions are
// safe for concurrent use on ranges that do not overlap.
package vm

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"unsafe"
)

// HugePageBytes is the size of a huge page. Decommitting a part of one splits it.
const HugePageBytes = 2 << 20

// ErrNoMemory matches errors for lack of memory, address space, mappings or lockable pages. A
// later retry may succeed.
var ErrNoMemory = errors.New("no memory")

// ErrUnsupported matches errors of calls that the system does not support, or not for this range.
// Nothing has changed, and a retry fails too.
var ErrUnsupported = fmt.Errorf("%w", errors.ErrUnsupported)

// An Error describes a call that the system refused.
type Error struct {
	Op   Op
	Addr uintptr // 0 if there is no address yet
	Size uintptr // bytes
	Err  error   // the system's error
}

func (e *Error) Error() string {
	if e.Addr == 0 {
		return fmt.Sprintf("freehold: vm: %v of %d bytes: %v", e.Op, e.Size, e.Err)
	}
	return fmt.Sprintf("freehold: vm: %v of %d bytes at %#x: %v", e.Op, e.Size, e.Addr, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is the class of e.
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

// Pointer turns an off-heap address into a pointer. It and NonNil are the only such
// conversions: off-heap memory does not move and the collector ignores it.
//
// Precondition: addr came from Reserve or MapFile, and the pointer is not used
// on memory that is not committed.
func Pointer(addr uintptr) unsafe.Pointer {
	if observed {
		accessed(addr)
	}
	return *(*unsafe.Pointer)(unsafe.Pointer(&addr))
}

// NonNil is Pointer for an address that is not 0: the compiler takes the result for non-nil.
// Pointer goes through the stack on arm64.
//
//go:nocheckptr
func NonNil(addr uintptr) unsafe.Pointer {
	if observed {
		accessed(addr)
	}
	return unsafe.Add(nil, addr)
}

// bytesAt returns a range as a slice, for system calls: it may not be committed yet.
func bytesAt(addr, size uintptr) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), size)
}

// MaxReserve returns the first size that a large reservation should try, a power of two. If the
// process's address space is limited, it is at most a quarter of the rest, since Go's own heap
// needs addresses too. The system may still refuse it.
func MaxReserve() uintptr {
	quarter := addressesLeft() / 4
	if quarter >= maxReserve {
		return maxReserve
	}
	return 1 << bits.Len(uint(quarter)) / 2
}

// AddressesLeft returns the bytes of addresses that the process may still reserve under its
// limit. Without a known limit it is the largest number.
func AddressesLeft() uintptr { return addressesLeft() }

// Reserve reserves size bytes of address space at a multiple of align, a power of
// two. The range is not accessible and uses no memory. It is never released: the
// caller keeps and recycles it.
//
// To reach the alignment, Reserve reserves and keeps up to align bytes more.
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

// Commit makes a range readable and writable. Pages that were never committed, or
// were decommitted since, read zero; the others keep their contents. On Linux from
// 5.4 on, memory locked by mlockall becomes resident as it is touched.
func Commit(addr, size uintptr) error {
	check(OpCommit, addr, size)
	return do(OpCommit, addr, size, commit)
}

// Decommit drops a range's contents and returns its physical memory at once. Call
// Commit before the next use, except where [HolesReadZero] is set. Decommit may
// make inaccessible pages accessible.
//
// On an error the range is still committed; its contents are unchanged or zero.
func Decommit(addr, size uintptr) error {
	check(OpDecommit, addr, size)
	return do(OpDecommit, addr, size, decommit)
}

// Revoke is like Decommit, and any access faults until Commit. It may also drop
// advice, names and locks. Where memory is [GoBacked], nothing faults and the range
// reads zero.
func Revoke(addr, size uintptr) error {
	check(OpRevoke, addr, size)
	return do(OpRevoke, addr, size, revoke)
}

// RevokeWrites is like Decommit, and merges mappings as Renew does. If [HolesReadZero], reads
// find zeros at any moment. Unless [GoBacked], a write faults until Commit.
func RevokeWrites(addr, size uintptr) error {
	check(OpRevoke, addr, size)
	return do(OpRevoke, addr, size, revokeWrites)
}

// Renew makes a range committed and zero, from any state. It merges mappings that Move and
// Advise have split. It may drop advice, names and locks.
//
// On an error the range may be revoked and its contents dropped.
func Renew(addr, size uintptr) error {
	check(OpRenew, addr, size)
	if err := do(OpRenew, addr, size, renew); err != nil {
		return err
	}
	return do(OpCommit, addr, size, commit)
}

// Move moves the pages of [src, src+size) to dst without a copy. The contents of dst
// are lost; src reads zero and stays committed. Advice moves with the pages.
//
// If the system does not support it, the error matches [ErrUnsupported] and dst is
// unchanged. After another error, each page of dst is unchanged or committed and
// zero; if memory is very short, it may be inaccessible. After any error src is
// unchanged: Commit dst and copy.
//
// Precondition: both ranges are in reservations and do not overlap, and src is
// committed.
func Move(dst, src, size uintptr) error {
	check(OpMove, dst, size)
	check(OpMove, src, size)
	if dst < src+size && src < dst+size {
		panic(fmt.Sprintf("freehold: vm: move of %d bytes from %#x to %#x: the ranges overlap", size, src, dst))
	}
	return do(OpMove, dst, size, func(dst, size uintptr) error { return move(dst, src, size) })
}

// Resident reports which pages of a range are in physical memory: it sets the
// lowest bit of pages[i] if page i is. Other pages may be in swap. The result may
// be out of date when the call returns. The error matches [ErrUnsupported] if the
// system cannot tell.
//
// Precondition: pages has one element for each page.
func Resident(addr, size uintptr, pages []byte) error {
	check(OpResident, addr, size)
	if uintptr(len(pages)) != size/pageBytes {
		panic(fmt.Sprintf("freehold: vm: %d elements for the pages of %d bytes", len(pages), size))
	}
	return do(OpResident, addr, size, func(addr, size uintptr) error { return resident(addr, size, pages) })
}

// Name shows a range as "freehold: name" in /proc/self/maps, if the system supports
// it. Ranges with different names are separate mappings.
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

// RoundUp returns n rounded up to a multiple of unit, a power of two.
func RoundUp[T int | int64 | uintptr](n, unit T) T { return (n + unit - 1) &^ (unit - 1) }
