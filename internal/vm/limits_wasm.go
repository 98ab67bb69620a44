// How much of Go's heap may become off-heap memory on wasm, which has 4 GiB.

package vm

// maxReserve is the largest reservation to try first.
const maxReserve uintptr = 16 << 20

// The limits of one reservation and of all of them.
const (
	maxBlockBytes   = 256 << 20
	maxBackingBytes = 2 << 30
)

// systemPageBytes is the unit of allocation. Wasm's own pages, of 64 KiB, are the
// unit that the program's memory grows by.
func systemPageBytes() uintptr { return 4 << 10 }
