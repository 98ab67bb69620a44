// Pages: commit and decommit for ranges that are not whole OS pages.
//
// The engine's unit is pageBytes. Where the system's page is larger, memory is
// committed outwards and decommitted inwards, so that neighbours are safe.

package heap

import "github.com/freehold-go/freehold/internal/vm"

// commit makes [addr, addr+size) accessible.
func commit(addr, size uintptr) error {
	os := vm.PageBytes()
	from := addr &^ (os - 1)
	return vm.Commit(from, roundUp(addr+size, os)-from)
}

// decommit gives back the whole OS pages inside [addr, addr+size), which are
// [from, to), and which then read zero.
func decommit(addr, size uintptr) (from, to uintptr, err error) {
	os := vm.PageBytes()
	from, to = roundUp(addr, os), (addr+size)&^(os-1)
	if from >= to {
		return addr, addr, nil
	}
	return from, to, vm.Decommit(from, to-from)
}
