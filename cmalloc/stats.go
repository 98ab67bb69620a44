// Stats: what malloc reports.

package cmalloc

// Stats is a snapshot of all of C's heap, in bytes: of every Heap and of C code
// too. A figure that the malloc in use does not report is -1. jemalloc reports all,
// glibc 2.33 and later Allocated and Mapped, others none.
type Stats struct {
	Allocated int // in live blocks and in those that threads cache, as malloc rounds them
	Active    int // in pages that hold a live block
	Metadata  int // malloc's own bookkeeping
	Resident  int // physical memory, an upper bound
	Mapped    int // address space with memory behind it, or that may get some
	Retained  int // address space that is kept without memory
}

// Stats returns the current figures. It allocates neither in Go nor in C. glibc
// locks and walks its free blocks for it (BenchmarkStats).
func (h *Heap) Stats() Stats { return readStats() }
