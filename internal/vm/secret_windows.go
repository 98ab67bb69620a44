// Secrets on Windows are closed, but not locked: VirtualProtect unlocks a page that becomes
// inaccessible (STATUS_WAS_UNLOCKED). There is no fork.

package vm

import "golang.org/x/sys/windows"

// always is what every secret has here.
const always = NoFork | Closed | Guarded

func reserveSecret(size uintptr) (uintptr, error) {
	return windows.VirtualAlloc(0, size, windows.MEM_RESERVE, windows.PAGE_NOACCESS)
}

func commitSecret(addr, size uintptr) error {
	_, err := windows.VirtualAlloc(addr, size, windows.MEM_COMMIT, windows.PAGE_READWRITE)
	return err
}

func hide(addr, size uintptr) error { return ErrUnsupported }

func lockSecret(addr, size uintptr) error { return ErrUnsupported }

func keep(addr, size uintptr, hidden bool) Secrecy { return 0 }

func protectSecret(addr, size uintptr, access Access) error {
	var before uint32
	return windows.VirtualProtect(addr, size, [...]uint32{windows.PAGE_NOACCESS, windows.PAGE_READONLY, windows.PAGE_READWRITE}[access], &before)
}

func revokeSecret(addr, size uintptr) error {
	return windows.VirtualFree(addr, size, windows.MEM_DECOMMIT)
}
