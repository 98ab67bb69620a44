// Allocator: blocks that detect misuse.
//
// Each block is a separate piece of Go memory, between two edges:
//
//	+--------------+-------------------+--------------+
//	| edge >= 64 B | block, len == cap | edge >= 64 B |
//	+--------------+-------------------+--------------+
//
// Edges are filled with edgeByte, so a write outside the block changes them. Freed
// blocks are filled with freedByte and kept in quarantine, so late writes change
// them. Both are checked when the block is freed, when it leaves quarantine, and
// when the test ends.

package alloctest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/poison"
	"github.com/freehold-go/freehold/internal/stacks"
	"github.com/freehold-go/freehold/internal/watch"
)

const (
	edgeBytes       = 64
	maxBlockBytes   = 256 << 20 // largest size and alignment; more is out of memory
	quarantineBytes = 16 << 20  // freed blocks in quarantine
	maxReports      = 10        // stacks whose leaks are reported

	freshByte = 0xCD // what Alloc fills blocks with: undefined, but not zero
	freedByte = poison.Fill
	edgeByte  = 0xED

	prefix = "alloctest.Allocator." // of a method's name in panics
)

// Allocator is an allocator for tests; see [New]. It implements [freehold.Owner]
// and is safe for concurrent use.
type Allocator struct {
	t testing.TB

	mu         sync.Mutex // guards the fields below
	live       map[uintptr]*block
	quarantine []*block // freed, oldest first
	freedBytes int      // their mem in bytes
	seq        int      // blocks handed out so far
}

// A block and the memory around it.
type block struct {
	mem    []byte // with the edges
	from   int    // index of the block in mem
	size   int
	align  int
	seq    int
	alloc  stacks.ID
	freed  stacks.ID // Other while live
	broken bool      // damage was reported
}

func init() {
	poison.Checks = func(allocator any) bool { _, ok := allocator.(*Allocator); return ok }
}

// New returns an allocator that fails t, through Errorf, for
//
//   - the blocks that are still live after the test and the cleanups registered
//     later than New, with their sizes and the stack that allocated them; if the test
//     has failed already, only their number is logged,
//   - a write up to 64 bytes outside a block, detected when the block is freed or
//     the test ends,
//   - a write to a freed block, detected at the end or after 16 MiB more have been
//     freed.
//
// Free and Resize of anything but a live block panic, with the stacks of its
// allocation and first Free if it had any. Alloc fills blocks with 0xCD, Free with
// 0xDB. Resize shrinks in place and never grows, so growth always moves the block,
// and a pointer to its old address reads 0xDB.
//
// The blocks are Go memory, which the race detector and checkptr see. Live blocks
// stay allocated even if no Go code refers to them. Sizes and alignments above 256
// MiB are out of memory. Each call records its stack; all Allocators together keep 65,535.
func New(t testing.TB) *Allocator {
	arg.NotNil("alloctest.New", "t", t)
	a := &Allocator{t: t, live: map[uintptr]*block{}}
	watch.LendGoMemory(1)
	t.Cleanup(func() {
		a.finish()
		watch.LendGoMemory(-1)
	})
	return a
}

// Alloc implements [freehold.Allocator].
func (a *Allocator) Alloc(size, align int) ([]byte, error) {
	return a.alloc("Alloc", size, align, freshByte)
}

// Zeroed implements [freehold.Allocator].
func (a *Allocator) Zeroed(size, align int) ([]byte, error) {
	return a.alloc("Zeroed", size, align, 0)
}

func (a *Allocator) alloc(call string, size, align int, fill byte) ([]byte, error) {
	arg.AtLeast(prefix+call, "size", size, 0)
	arg.Align(prefix+call, align)
	switch {
	case size == 0:
		return []byte{}, nil
	case size > maxBlockBytes || align > maxBlockBytes:
		return nil, fmt.Errorf("%w: alloctest gives no block of %s at multiples of %d", freehold.ErrOutOfMemory, arg.Bytes(size), align)
	}
	k := &block{mem: make([]byte, edgeBytes+align-1+size+edgeBytes), size: size, align: align, alloc: allocators.Capture(0)}
	k.from = edgeBytes
	if past := int((addrOf(k.mem) + edgeBytes) % uintptr(align)); past > 0 {
		k.from += align - past
	}
	poison.FillBytes(k.mem[:k.from], edgeByte)
	poison.FillBytes(k.mem[k.from+size:], edgeByte)
	if fill != 0 {
		poison.FillBytes(k.bytes(), fill)
	}

	a.mu.Lock()
	defer a.mu.Unlock()
	a.seq++
	k.seq = a.seq
	a.live[addrOf(k.bytes())] = k
	return k.bytes(), nil
}

// Resize implements [freehold.Allocator].
func (a *Allocator) Resize(b []byte, size int) ([]byte, bool) {
	arg.AtLeast(prefix+"Resize", "size", size, 0)
	if size == 0 {
		a.free("Resize", b)
		return []byte{}, true
	}
	if len(b) == 0 {
		return nil, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	k := a.mustFind("Resize", b)
	if size > k.size {
		return nil, false
	}
	a.checkEdges(k)
	poison.FillBytes(k.bytes()[size:], edgeByte)
	k.size = size
	return k.bytes(), true
}

// Free implements [freehold.Allocator].
func (a *Allocator) Free(b []byte) { a.free("Free", b) }

// free moves a live block to quarantine. call is the method that was called.
func (a *Allocator) free(call string, b []byte) {
	if cap(b) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	k := a.mustFind(call, b)
	a.checkEdges(k)
	poison.FillBytes(k.bytes(), freedByte)
	k.freed = allocators.Capture(0)
	delete(a.live, addrOf(k.bytes()))
	a.quarantine = append(a.quarantine, k)
	a.freedBytes += len(k.mem)
	for a.freedBytes > quarantineBytes {
		oldest := a.quarantine[0]
		a.checkFreed(oldest)
		a.quarantine = a.quarantine[1:]
		a.freedBytes -= len(oldest.mem)
	}
}

// Owns implements [freehold.Owner]. It reports whether b begins in a live block.
func (a *Allocator) Owns(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.live[addrOf(b)]; ok {
		return true
	}
	return around(maps.Values(a.live), b) != nil
}

// bytes returns the block as Alloc does.
func (k *block) bytes() []byte { return k.mem[k.from:][:k.size:k.size] }

// mustFind returns the live block b, or panics and says what b is instead.
func (a *Allocator) mustFind(call string, b []byte) *block {
	addr := addrOf(b)
	if k := a.live[addr]; k != nil && k.size == len(b) {
		return k
	}
	fault := "which this allocator did not hand out; was it moved by append?"
	if k := around(maps.Values(a.live), b); k != nil {
		fault = fmt.Sprintf("which is at byte %d of a block of %s%s",
			int(addr-addrOf(k.bytes())), arg.Bytes(k.size), after("allocated at:", k.alloc))
	} else if k := around(slices.Values(a.quarantine), b); k != nil {
		fault = fmt.Sprintf("which is in a freed block of %s%s%s",
			arg.Bytes(k.size), after("allocated at:", k.alloc), after("freed at:", k.freed))
	}
	panic(fmt.Sprintf("freehold: %s%s: %s at %#x, %s", prefix, call, arg.Bytes(len(b)), addr, fault))
}

// around returns the block that b begins in, or nil.
func around(blocks func(yield func(*block) bool), b []byte) *block {
	for k := range blocks {
		if addrOf(b)-addrOf(k.bytes()) < uintptr(k.size) {
			return k
		}
	}
	return nil
}

// checkEdges reports a write outside k.
func (a *Allocator) checkEdges(k *block) {
	if i := poison.Other(k.mem[:k.from], edgeByte); i >= 0 {
		a.report(k, fmt.Sprintf("a write %s before the beginning", arg.Bytes(k.from-i)))
	}
	if i := poison.Other(k.mem[k.from+k.size:], edgeByte); i >= 0 {
		a.report(k, fmt.Sprintf("a write %s after the end", arg.Bytes(i+1)))
	}
}

// checkFreed reports a write to k after it was freed.
func (a *Allocator) checkFreed(k *block) {
	a.checkEdges(k)
	if i := poison.Other(k.bytes(), freedByte); i >= 0 {
		a.report(k, fmt.Sprintf("a write after Free, to byte %d", i))
	}
}

// report fails the test for damage to k, once.
func (a *Allocator) report(k *block, what string) {
	if !k.broken {
		k.broken = true
		a.t.Errorf("alloctest: %s of a block of %s%s%s",
			what, arg.Bytes(k.size), after("allocated at:", k.alloc), after("freed at:", k.freed))
	}
}

// finish checks all blocks when the test ends.
func (a *Allocator) finish() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, k := range a.quarantine {
		a.checkFreed(k)
	}
	leaks := slices.SortedFunc(maps.Values(a.live), func(x, y *block) int { return x.seq - y.seq })
	bytes := 0
	for _, k := range leaks {
		a.checkEdges(k)
		bytes += k.size
	}
	if len(leaks) > 0 && a.t.Failed() {
		a.t.Logf("alloctest: %d blocks of %d bytes in all were live when the test failed", len(leaks), bytes)
		return
	}
	groups := byStack(leaks)
	for _, g := range groups[:min(len(groups), maxReports)] {
		k := g.first
		if g.blocks > 1 {
			a.t.Errorf("alloctest: leak of %d blocks and %d bytes%s", g.blocks, g.bytes, after("allocated at:", k.alloc))
			continue
		}
		a.t.Errorf("alloctest: leak of %s, aligned to %d%s", arg.Bytes(k.size), k.align, after("allocated at:", k.alloc))
	}
	if len(groups) > maxReports {
		a.t.Errorf("alloctest: leak of %d blocks and %d bytes in all", len(leaks), bytes)
	}
}

// A group is the leaked blocks of one stack.
type group struct {
	first         *block
	blocks, bytes int
}

// byStack returns blocks by stack, in the order of the first of each.
func byStack(blocks []*block) (groups []*group) {
	at := map[stacks.ID]*group{}
	for _, k := range blocks {
		if at[k.alloc] == nil {
			at[k.alloc] = &group{first: k}
			groups = append(groups, at[k.alloc])
		}
		at[k.alloc].blocks++
		at[k.alloc].bytes += k.size
	}
	return groups
}

// allocators has the stacks of all Allocators.
var allocators stacks.Table

// after returns the heading and a stack from the caller of the Allocator's method on, or "" if
// there is none. Capture and two calls of the Allocator's are the innermost.
func after(heading string, id stacks.ID) string {
	pcs, _ := allocators.Stack(id)
	if len(pcs) == 0 {
		return ""
	}
	return "\n\t" + heading + "\n" + strings.TrimSuffix(stacks.Text(pcs[3:], "\t\t"), "\n")
}
