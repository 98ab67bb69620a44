//go:build !linux || race

package vm

// TellsResident reports that Resident works, but for a sandbox that refuses it.
const TellsResident = false

func resident(addr, size uintptr, pages []byte) error { return ErrUnsupported }
