// Secrets on systems without mmap are Go memory without any protection.

//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package vm

// always is what every secret has here.
const always Secrecy = 0

func reserveSecret(size uintptr) (uintptr, error) { return reserve(size, pageBytes) }

func commitSecret(addr, size uintptr) error { return nil }

func hide(addr, size uintptr) error { return ErrUnsupported }

func lockSecret(addr, size uintptr) error { return ErrUnsupported }

func keep(addr, size uintptr, hidden bool) Secrecy { return 0 }

func protectSecret(addr, size uintptr, access Access) error { return nil }

func revokeSecret(addr, size uintptr) error { return decommit(addr, size) }
