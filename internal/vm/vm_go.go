// Memory from Go's own heap: for race builds, since the detector does not see
// mapped memory, and for systems without mmap.
//
// The collector neither scans nor frees it. It is always accessible, and
// decommitted pages read zero.

//go:build race || !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package vm

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/lockrank"
)

// GoBacked reports that memory is Go's own, so that Revoke cannot make it fault.
const GoBacked = true

// HolesReadZero reports that a decommitted range may be accessed without Commit and
// reads zero.
const HolesReadZero = true

// backing keeps every reservation alive.
var backing struct {
	mu     lockrank.Mutex[lockrank.Leaf]
	bytes  uintptr  // guarded by mu
	blocks [][]byte // guarded by mu
}

// reserve refuses sizes for which Go's allocator might throw.
func reserve(size, align uintptr) (addr uintptr, err error) {
	backing.mu.Lock()
	defer backing.mu.Unlock()
	bytes := size + align
	if bytes > maxBlockBytes || bytes > maxBackingBytes-backing.bytes {
		return 0, ErrNoMemory
	}
	block := make([]byte, bytes)
	backing.bytes += bytes
	backing.blocks = append(backing.blocks, block)
	return RoundUp(uintptr(unsafe.Pointer(unsafe.SliceData(block))), align), nil
}

func commit(addr, size uintptr) error { return nil }

func decommit(addr, size uintptr) error {
	clear(bytesAt(addr, size))
	return nil
}

func revoke(addr, size uintptr) error { return decommit(addr, size) }

func revokeWrites(addr, size uintptr) error { return decommit(addr, size) }

func renew(addr, size uintptr) error { return decommit(addr, size) }

func move(dst, src, size uintptr) error { return ErrUnsupported }
