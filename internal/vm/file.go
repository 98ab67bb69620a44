// Mapped files: a file's bytes as memory, shared with everyone who maps it.
//
//	fresh address --MapFile--> mapped --UnmapFile--> free --MapFile--> mapped
//
// An address range that held a file is kept, without access, for later files;
// ranges.go holds the free ones.

package vm

import (
	"fmt"
	"io"
	"math"
	"os"
)

// MapFile maps size bytes of f from offset as shared memory: what is written
// there reaches the file, now or at Sync, and f may be closed. Size need not
// be whole pages; past it, up to the page's end, nothing is kept.
//
// A file that is too short is an io.ErrUnexpectedEOF, a system without mapped
// files an [ErrUnsupported]. A file that gets truncated while it is mapped
// faults (SIGBUS), and so does a write for which the disk has no room: allocate
// a file's blocks before.
//
// Precondition: offset is a multiple of OffsetBytes, size > 0.
func MapFile(f *os.File, offset int64, size uintptr, writable bool) (addr uintptr, err error) {
	if size == 0 || size > math.MaxInt-OffsetBytes() || offset < 0 || offset%int64(OffsetBytes()) != 0 || offset > math.MaxInt64-int64(size) {
		panic(fmt.Sprintf("freehold: vm: map file: %d bytes at offset %d", size, offset))
	}
	err = do(OpMapFile, 0, size, func(_, size uintptr) error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if info.Mode().IsRegular() && info.Size() < offset+int64(size) {
			return io.ErrUnexpectedEOF
		}
		conn, err := f.SyscallConn()
		if err != nil {
			return err
		}
		controlErr := conn.Control(func(fd uintptr) { addr, err = mapFile(fd, offset, size, writable) })
		if controlErr != nil {
			return controlErr
		}
		return err
	})
	return addr, err
}

// UnmapFile takes back exactly a range that MapFile returned, of the size it
// was asked for. The addresses may be used again by a later MapFile, by nobody
// else. Dirty pages still reach the file.
func UnmapFile(addr, size uintptr) error {
	size = roundUp(size, pageBytes)
	check(OpUnmapFile, addr, size)
	return do(OpUnmapFile, addr, size, unmapFile)
}

// Sync writes a mapped range's dirty pages to the file and waits for it. On
// Windows and macOS f.Sync must follow for them to survive a power loss.
//
// Precondition: addr is a multiple of PageBytes; size is rounded up to pages.
func Sync(addr, size uintptr) error {
	size = roundUp(size, pageBytes)
	check(OpSync, addr, size)
	return do(OpSync, addr, size, syncFile)
}
