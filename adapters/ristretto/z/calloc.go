// Calloc: blocks, and figures of the package's memory.

// Package z has the memory functions of ristretto's package z, on freehold, by the same names. A
// program changes the import path:
//
//	import "github.com/freehold-go/freehold/adapters/ristretto/z" // was github.com/dgraph-io/ristretto/v2/z
//
// It has [Calloc] and [Free], [Allocator] and [AllocatorPool], [Buffer], [Tree], and their figures.
// The rest of ristretto's package z, such as Closer, Bloom and MmapFile, has nothing to do with
// allocation: import that package too, by another name.
//
// Memory is off-heap without cgo. ristretto uses jemalloc with the tag jemalloc, and Go's heap
// without the tag. All memory is on one heap, which [Options] configures and profiles show.
//
// # Requirements
//
// All memory must be freed or released, as with jemalloc; on Go's heap ristretto leaves that to the
// collector. [Free] panics for a block that is not live, such as one that was freed before. [Leaks]
// and FREEHOLD_DEBUG=leak find memory that was not freed.
//
// # Differences
//
// If memory runs out, calls panic with an error that matches freehold.ErrOutOfMemory; with jemalloc
// the process ends. A Tree of [NewTreePersistent] is in memory, and its file survives a kill of the
// process. [Buffer.SortSlice] is stable.
//
// # When not to use it
//
// Badger and ristretto's own caches import ristretto; for them there is the command freehold
// overlay. New code should use packages buffer, arena and btree themselves: they have errors
// instead of panics, sorts on all processors, and readers during Reset.
package z

import (
	"fmt"
	"strings"
	"sync"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/track"
)

// Options configures the package's heap, which the first block makes. Set a limit before that.
var Options = freehold.HeapOptions{Name: "z"}

// heap is the package's heap. blocks counts its live blocks.
var (
	heap   = sync.OnceValue(func() *freehold.Heap { return freehold.NewHeap(&Options) })
	blocks = sync.OnceValue(func() *freehold.Tagged { return freehold.NewTagged(heap(), "z") })
)

const align = 16 // of malloc

// Calloc returns a block of n zero bytes at a multiple of 16. The caller frees it. It is empty for
// n = 0. The tag is for readers of the code: profiles show stacks. It panics if memory runs out.
func Calloc(n int, tag string) []byte { return freehold.Must(blocks().Zeroed(n, align)) }

// CallocNoRef is Calloc.
func CallocNoRef(n int, tag string) []byte { return Calloc(n, tag) }

// Free frees a block of Calloc, which may have been cut to a shorter length. It panics if b is not
// such a block.
func Free(b []byte) { blocks().Free(b[:cap(b)]) }

// NumAllocBytes returns the allocated bytes: of Calloc, and in Allocators, Buffers and Trees.
func NumAllocBytes() int64 { return int64(blocks().Counts().LiveBytes) }

// MemStats has figures in bytes, in jemalloc's terms.
type MemStats struct {
	Allocated uint64 // in blocks
	Active    uint64 // in pages with blocks
	Resident  uint64 // of physical memory: an upper bound
	Retained  uint64 // of addresses without memory
}

// ReadMemStats sets the figures. It takes a few microseconds.
func ReadMemStats(stats *MemStats) {
	st := heap().Stats()
	*stats = MemStats{uint64(st.LiveBytes), uint64(st.Active), uint64(st.Resident), uint64(st.Retained)}
}

// StatsPrint prints the heap's figures.
func StatsPrint() { fmt.Println(heap()) }

// Leaks describes the allocated memory. With FREEHOLD_DEBUG=leak in the environment it includes the
// stacks of the allocations.
func Leaks() string {
	c := blocks().Counts()
	if c.Live == 0 {
		return "NO leaks found."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d blocks of %d bytes are allocated.\n", c.Live, c.LiveBytes)
	_ = track.WriteLeaks(&b) // a Builder has no errors
	return b.String()
}
