// Limits on off-heap memory taken from Go's heap on wasm, which has 4 GiB.

package vm

// maxReserve is the first size that a reservation tries.
const maxReserve uintptr = 16 << 20

// The limits of one reservation and of all of them.
const (
	maxBlockBytes   = 256 << 20
	maxBackingBytes = 2 << 30
)

// systemPageBytes is the unit of allocation. Wasm's own pages of 64 KiB are only the unit in
// which the program's memory grows.
func systemPageBytes() uintptr { return 4 << 10 }
