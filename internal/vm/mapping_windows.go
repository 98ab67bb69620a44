// Mappings: code for anonymous memory and mapped files on Windows.

package vm

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/windows"
)

// granuleBytes is the alignment of reservations.
const granuleBytes = 64 << 10

var (
	kernel32              = windows.NewLazySystemDLL("kernel32.dll")
	mapViewOfFileEx       = kernel32.NewProc("MapViewOfFileEx")
	prefetchVirtualMemory = kernel32.NewProc("PrefetchVirtualMemory")
)

func advise(addr, size uintptr, a Advice) error {
	switch a {
	case WillNeed:
		if prefetchVirtualMemory.Find() != nil {
			return ErrUnsupported
		}
		r := addressRange{addr, size} // the layout of a WIN32_MEMORY_RANGE_ENTRY
		ok, _, err := prefetchVirtualMemory.Call(uintptr(windows.CurrentProcess()), 1, uintptr(unsafe.Pointer(&r)), 0)
		if ok == 0 {
			return err
		}
		return nil
	case DontNeed:
		_, err := windows.VirtualAlloc(addr, size, windows.MEM_RESET, windows.PAGE_READWRITE)
		return err
	}
	return ErrUnsupported
}

func setName(addr, size uintptr, name string) error { return ErrUnsupported }

func outOfMemory(err error) bool {
	for _, class := range []error{
		ErrNoMemory,
		windows.ERROR_NOT_ENOUGH_MEMORY, windows.ERROR_OUTOFMEMORY,
		windows.ERROR_COMMITMENT_LIMIT, windows.ERROR_WORKING_SET_QUOTA,
	} {
		if errors.Is(err, class) {
			return true
		}
	}
	return false
}
