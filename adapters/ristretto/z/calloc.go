// Calloc: blocks, and figures of all that the package has.

// Package z has the memory of package z of ristretto, on freehold, by the same names. A program changes the import path:
//
//	import "github.com/freehold-go/freehold/adapters/ristretto/z" // was github.com/dgraph-io/ristretto/v2/z
//
// It has [Calloc] and [Free], [Allocator] and [AllocatorPool], [Buffer], [Tree], and their figures. What else package z of ristretto has, such as
// Closer, Bloom and MmapFile, is no matter of allocation: import it beside this one, by another name.
//
// Memory is off-heap without cgo, where ristretto has jemalloc with the tag jemalloc and Go's heap without it. All is on one heap, which
// [Options] sets up and profiles show.
//
// # What it takes
//
// Everything must be freed or released, as with jemalloc. Without it, ristretto leaves that to the collector. [Free] panics for what is not a
// live block, as one freed before. [Leaks] and FREEHOLD_DEBUG=leak find what was not freed.
//
// # What differs
//
// Where memory runs out, calls panic with an error that matches freehold.ErrOutOfMemory; jemalloc's end the process. A Tree of
// [NewTreePersistent] is in memory, and survives a process that is killed. [Buffer.SortSlice] is stable.
//
// # When not to use it
//
// Badger and ristretto's own caches import ristretto: the command freehold overlay puts those on freehold. New code has more of packages
// buffer, arena and btree themselves: errors in place of panics, sorts on all processors, readers during Reset.
package z

import (
	"fmt"
	"strings"
	"sync"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/track"
)

// Options is how the package's heap is made, at the first block. Set a limit before that.
var Options = freehold.HeapOptions{Name: "z"}

// heap is the package's. blocks counts what is allocated from it.
var (
	heap   = sync.OnceValue(func() *freehold.Heap { return freehold.NewHeap(&Options) })
	blocks = sync.OnceValue(func() *freehold.Tagged { return freehold.NewTagged(heap(), "z") })
)

const align = 16 // of malloc

// Calloc returns a block of n zero bytes at a multiple of 16. The caller frees it. It is empty for n = 0. The tag is for readers of the
// code: profiles show stacks. It panics if memory runs out.
func Calloc(n int, tag string) []byte { return freehold.Must(blocks().Zeroed(n, align)) }

// CallocNoRef is Calloc.
func CallocNoRef(n int, tag string) []byte { return Calloc(n, tag) }

// Free frees a block of Calloc, which may have been cut to a shorter length. It panics if b is none.
func Free(b []byte) { blocks().Free(b[:cap(b)]) }

// NumAllocBytes returns the bytes that are allocated: by Calloc, and in Allocators, Buffers and Trees.
func NumAllocBytes() int64 { return int64(blocks().Counts().LiveBytes) }

// MemStats has figures in bytes, in jemalloc's terms.
type MemStats struct {
	Allocated uint64 // in blocks
	Active    uint64 // in pages with blocks
	Resident  uint64 // of physical memory, at most
	Retained  uint64 // of addresses without memory
}

// ReadMemStats sets the figures. It takes some microseconds.
func ReadMemStats(stats *MemStats) {
	st := heap().Stats()
	*stats = MemStats{uint64(st.LiveBytes), uint64(st.Active), uint64(st.Resident), uint64(st.Retained)}
}

// StatsPrint prints the heap's figures.
func StatsPrint() { fmt.Println(heap()) }

// Leaks describes what is allocated. With FREEHOLD_DEBUG=leak in the environment it has the stacks that allocated it.
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
