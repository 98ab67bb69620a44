//go:build !linux || race

package vm

func resident(addr, size uintptr, pages []byte) error { return ErrUnsupported }
