// macOS and the BSDs overcommit address space by default, and do not name mappings.

//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package vm

const noReserve = 0

func setName(addr, size uintptr, name string) error { return ErrUnsupported }
