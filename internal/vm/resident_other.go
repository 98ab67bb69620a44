//go:build !linux || race

package vm

// TellsResident reports that Resident works, unless a sandbox forbids it.
const TellsResident = false

func resident(addr, size uintptr, pages []byte) error { return ErrUnsupported }
