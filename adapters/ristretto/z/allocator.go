// Allocator: an arena for any goroutine.

package z

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
)

// Allocator allocates blocks that are freed together, by Release, Reset or TrimTo. It is safe for
// concurrent use, except for these three. It is an [arena.Shared], which gives each processor a
// chunk of its own. A nil Allocator allocates from Go's heap.
type Allocator struct {
	Ref uint64 // finds it in AllocatorFrom
	Tag string // of NewAllocator, or of Get of a pool

	arena *arena.Shared
}

var (
	allocators sync.Map // Allocators that were not released: listing by Ref
	lastRef    atomic.Uint64
)

// A listing is an Allocator for other goroutines. They must not read its Tag, which the owner may
// change.
type listing struct {
	a   *Allocator
	tag string
}

func (a *Allocator) list(tag string) {
	a.Tag = tag
	allocators.Store(a.Ref, listing{a, tag})
}

const maxAlloc = 1 << 30

// NewAllocator returns an empty Allocator. It takes chunks of about sz bytes, but at least 256 KiB
// and at most 4 MiB, when it needs them. Release frees it.
func NewAllocator(sz int, tag string) *Allocator {
	const least, most = 256 << 10, 4 << 20
	a := &Allocator{
		Ref:   lastRef.Add(1),
		arena: arena.NewShared(blocks(), &arena.SharedOptions{Name: tag, ChunkBytes: min(max(sz, least), most)}),
	}
	a.list(tag)
	return a
}

// AllocatorFrom returns the Allocator with a Ref, or nil if it was released.
func AllocatorFrom(ref uint64) *Allocator {
	v, _ := allocators.Load(ref)
	found, _ := v.(listing)
	return found.a
}

// Allocators describes all Allocators that were not released, by tag.
func Allocators() string {
	type sum struct{ n, bytes uint64 }
	tags := map[string]sum{}
	allocators.Range(func(_, v any) bool {
		l := v.(listing)
		s := tags[l.tag]
		tags[l.tag] = sum{s.n + 1, s.bytes + l.a.Allocated()}
		return true
	})
	var b strings.Builder
	for tag, s := range tags {
		fmt.Fprintf(&b, "Tag: %s Num: %d Size: %d . ", tag, s.n, s.bytes)
	}
	return b.String()
}

// Allocate returns a block of sz bytes, contents undefined, at any address. It is nil for 0. It
// panics for more than MaxAlloc, and if memory runs out.
func (a *Allocator) Allocate(sz int) []byte {
	switch {
	case a == nil:
		return make([]byte, sz)
	case sz > maxAlloc:
		panic(fmt.Sprintf("freehold: z.Allocator.Allocate: size %d, want %d at most", sz, maxAlloc))
	case sz == 0:
		return nil
	}
	return freehold.Must(a.arena.Alloc(sz, 1))
}

// AllocateAligned is Allocate of zero bytes at a multiple of 8.
func (a *Allocator) AllocateAligned(sz int) []byte {
	if a == nil {
		return make([]byte, sz)
	}
	return freehold.Must(a.arena.Zeroed(sz, 8))
}

// Copy returns a copy of buf.
func (a *Allocator) Copy(buf []byte) []byte {
	if a == nil {
		return bytes.Clone(buf)
	}
	out := a.Allocate(len(buf))
	copy(out, buf)
	return out
}

// MaxAlloc returns the largest size that Allocate takes.
func (a *Allocator) MaxAlloc() int { return maxAlloc }

// Size returns the bytes in blocks. It stops the world for about 20 us.
func (a *Allocator) Size() int { return a.arena.Stats().LiveBytes }

// Allocated returns the bytes in chunks.
func (a *Allocator) Allocated() uint64 { return uint64(a.arena.Reserved()) }

// String returns the Allocator's figures.
func (a *Allocator) String() string {
	return fmt.Sprintf("Allocator: %x\nAllocated: %d\nSize: %d\n", a.Ref, a.Allocated(), a.Size())
}

// Reset ends all blocks and keeps the memory.
func (a *Allocator) Reset() { a.arena.Reset() }

// TrimTo ends all blocks and frees chunks until at most max bytes are left.
func (a *Allocator) TrimTo(max int) {
	a.arena.Reset()
	a.arena.TrimTo(max)
}

// Release ends all blocks and frees the memory. Nothing else may be called after it.
func (a *Allocator) Release() {
	if a != nil {
		allocators.Delete(a.Ref)
		a.arena.Close()
	}
}
