// macOS and the BSDs have memory that is locked, and no more for secrets.

//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package vm

func hide(addr, size uintptr) error { return ErrUnsupported }

func keep(addr, size uintptr, hidden bool) Secrecy { return 0 }
