// Stats: the figures that malloc reports.

package cmalloc

// Stats is a snapshot of all of C's heap in bytes: every Heap and the C code too. A figure that the
// malloc in use does not report is -1. jemalloc reports all, glibc from 2.33 on Allocated and
// Mapped, others none.
type Stats struct {
	Allocated int // in live and thread-cached blocks, with malloc's rounding
	Active    int // in pages that hold a live block
	Metadata  int // malloc's own bookkeeping
	Resident  int // physical memory, an upper bound
	Mapped    int // address space that has memory, or may get some
	Retained  int // address space kept without memory
}

// Stats returns the current figures. It allocates neither in Go nor in C. In glibc it locks the
// heap and walks the free blocks (BenchmarkStats).
func (h *Heap) Stats() Stats { return readStats() }
