// macOS and the BSDs overcommit address space without being asked, and have no
// names for mappings.

//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package vm

const noReserve = 0

func setName(addr, size uintptr, name string) error { return ErrUnsupported }
