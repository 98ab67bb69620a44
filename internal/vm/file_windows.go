// Mapped files as views of a section, in race builds too.

package vm

import (
	"os"

	"golang.org/x/sys/windows"
)

// fileRanges holds the addresses of unmapped views. Each is a separate reservation,
// which can only be released whole, so neighbours are not joined.
var fileRanges rangeList

const rangesJoin = false

func mapFile(fd, size uintptr, writable bool) (addr uintptr, err error) {
	prot, access := uint32(windows.PAGE_READONLY), uint32(windows.FILE_MAP_READ)
	if writable {
		prot, access = windows.PAGE_READWRITE, windows.FILE_MAP_READ|windows.FILE_MAP_WRITE
	}
	section, err := windows.CreateFileMapping(windows.Handle(fd), nil, prot, 0, 0, nil)
	if err != nil {
		return 0, err
	}
	defer windows.CloseHandle(section) // the view keeps it alive

	used := RoundUp(size, granuleBytes)
	r, ok := fileRanges.take(used)
	if !ok {
		return windows.MapViewOfFile(section, access, 0, 0, size)
	}
	if err := windows.VirtualFree(r.addr, 0, windows.MEM_RELEASE); err != nil {
		return 0, err
	}
	// Another thread may take the range before the view is mapped. Then the range is lost,
	// and the view is mapped elsewhere.
	addr, _, err = mapViewOfFileEx.Call(uintptr(section), uintptr(access), 0, 0, size, r.addr)
	if addr == 0 {
		keepRange(r)
		return windows.MapViewOfFile(section, access, 0, 0, size)
	}
	if r.size > used {
		keepRange(addressRange{r.addr + used, r.size - used})
	}
	return addr, nil
}

// unmapFile reserves the range again at once. Not every version of Windows can do that
// atomically: another thread may take the range in between, and it is then lost.
func unmapFile(addr, size uintptr) error {
	if err := windows.UnmapViewOfFile(addr); err != nil {
		return err
	}
	keepRange(addressRange{addr, RoundUp(size, granuleBytes)})
	return nil
}

// keepRange reserves an unmapped range for a later file.
func keepRange(r addressRange) {
	if _, err := windows.VirtualAlloc(r.addr, r.size, windows.MEM_RESERVE, windows.PAGE_NOACCESS); err == nil {
		fileRanges.put(r)
	}
}

func syncFile(addr, size uintptr) error { return windows.FlushViewOfFile(addr, size) }

func isSparse(*os.File) bool { return false }
