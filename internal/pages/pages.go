// Pages: commit and decommit for ranges that are not whole OS pages.
//
// The engine's unit is PageBytes. Where the system's page is larger, memory is
// committed outwards and decommitted inwards, so that neighbours are safe.

package pages

import "github.com/freehold-go/freehold/internal/vm"

// Commit makes [addr, addr+size) accessible.
func Commit(addr, size uintptr) error {
	os := vm.PageBytes()
	from := addr &^ (os - 1)
	return vm.Commit(from, RoundUp(addr+size, os)-from)
}

// Decommit gives back the whole OS pages inside [addr, addr+size). It returns their range
// [from, to), which then reads zero.
func Decommit(addr, size uintptr) (from, to uintptr, err error) {
	os := vm.PageBytes()
	from, to = RoundUp(addr, os), (addr+size)&^(os-1)
	if from >= to {
		return addr, addr, nil
	}
	return from, to, vm.Decommit(from, to-from)
}
