// Stats: what malloc says of itself.

package cmalloc

// Stats is a snapshot of all of C's heap, in bytes: of every Heap and of C code
// too. A figure that the malloc in use does not have is -1. jemalloc has all of
// them, glibc since 2.33 has Allocated and Mapped, others have none.
type Stats struct {
	Allocated int // in live blocks, as malloc rounds them; glibc counts blocks in its threads' caches too
	Active    int // in pages that hold a live block
	Metadata  int // malloc's own bookkeeping
	Resident  int // physical memory, an upper bound
	Mapped    int // address space with memory behind it, or that may get some
	Retained  int // address space that is kept without memory
}

// Stats returns the figures now. It allocates nothing, in C neither. jemalloc
// takes some 40 us to add them up; glibc takes 1 us or more, since it locks and walks
// its free blocks.
func (h *Heap) Stats() Stats { return readStats() }
