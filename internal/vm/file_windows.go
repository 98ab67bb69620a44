// Mapped files as views of a section, in race builds too.

package vm

import "golang.org/x/sys/windows"

// OffsetBytes is what the offset of a mapped file must be a multiple of.
func OffsetBytes() uintptr { return granuleBytes }

// fileRanges holds the addresses of views that were unmapped, each a reservation
// of its own: those can only be released whole, so neighbours stay apart.
var fileRanges rangeList

const rangesJoin = false

func mapFile(fd uintptr, offset int64, size uintptr, writable bool) (addr uintptr, err error) {
	prot, access := uint32(windows.PAGE_READONLY), uint32(windows.FILE_MAP_READ)
	if writable {
		prot, access = windows.PAGE_READWRITE, windows.FILE_MAP_READ|windows.FILE_MAP_WRITE
	}
	section, err := windows.CreateFileMapping(windows.Handle(fd), nil, prot, 0, 0, nil)
	if err != nil {
		return 0, err
	}
	defer windows.CloseHandle(section) // the view keeps it

	high, low := uint32(offset>>32), uint32(offset)
	used := roundUp(size, granuleBytes)
	r, ok := fileRanges.take(used)
	if !ok {
		return windows.MapViewOfFile(section, access, high, low, size)
	}
	if err := windows.VirtualFree(r.addr, 0, windows.MEM_RELEASE); err != nil {
		return 0, err
	}
	// From here to the end of the function somebody else may take the range;
	// then it is gone, and the view goes elsewhere.
	addr, _, err = mapViewOfFileEx.Call(uintptr(section), uintptr(access), uintptr(high), uintptr(low), size, r.addr)
	if addr == 0 {
		keepRange(r)
		return windows.MapViewOfFile(section, access, high, low, size)
	}
	if r.size > used {
		keepRange(addressRange{r.addr + used, r.size - used})
	}
	return addr, nil
}

// unmapFile reserves the range again at once. Windows has no atomic way that all
// its versions know: somebody else may get the range in between, and keeps it.
func unmapFile(addr, size uintptr) error {
	if err := windows.UnmapViewOfFile(addr); err != nil {
		return err
	}
	keepRange(addressRange{addr, roundUp(size, granuleBytes)})
	return nil
}

// keepRange reserves a range that nothing is mapped at, for a later file.
func keepRange(r addressRange) {
	if _, err := windows.VirtualAlloc(r.addr, r.size, windows.MEM_RESERVE, windows.PAGE_NOACCESS); err == nil {
		fileRanges.put(r)
	}
}

func syncFile(addr, size uintptr) error { return windows.FlushViewOfFile(addr, size) }
