// Leaks: blocks that are live.

package track

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/freehold-go/freehold/internal/owners"
	"github.com/freehold-go/freehold/internal/stacks"
)

// Leak counts the live blocks that one call stack allocated in one heap and for one tag.
type Leak struct {
	Heap   string    // as in Usage
	Tag    string    // as in Usage
	Stack  []uintptr // as in Usage
	Blocks int64
	Bytes  int64 // asked for
}

// Dropped counts owners of memory, such as heaps and arenas, that were dropped without Close: the
// garbage collector found them unreachable. Their memory is lost until the parent is closed, or for
// good if it came from the system. Containers with Options.Collect are no leak: their Collected is
// set, and their memory has been freed.
type Dropped struct {
	Kind  string    // the type, such as "freehold.Heap"; "(other)" beyond 1,023 stacks and names
	Name  string    // the owner's name, "" if it has none
	Stack []uintptr // of the call that made it, as in Usage
	Count int       // owners

	Collected bool // the collector closed them: see cache.Options.Collect
}

// Leaks returns the live blocks that were sampled, by stack, heap and tag, the most bytes first. If
// the rate was 1 from the start, it returns every live block, and the figures are exact. At other
// rates they are estimates, as in [Profile].
//
// Only the program knows whether a live block has leaked: call Leaks when all should be free, or
// compare two calls. An arena, a pool or a buffer shows with the memory that it takes from a heap,
// not with its own blocks.
func Leaks() []Leak {
	var all []Leak
	for _, u := range Profile() {
		if u.InUseObjects() > 0 {
			all = append(all, Leak{u.Heap, u.Tag, u.Stack, u.InUseObjects(), u.InUseBytes()})
		}
	}
	return all
}

// DroppedOwners returns the owners that the collector has found dropped without Close so far, by
// stack and name: a [freehold.Heap], arena.Arena and Shared, pool.Pool and Blocks, buffer.Buffer,
// hashmap.Map and Shared, btree.Map, intern.Strings and Shared, vector.Vector and Chunked. It finds
// none unless the program was started with FREEHOLD_DEBUG=leak. That also reports the first of each
// stack on standard error, once the collector has found it.
//
// A reachable owner is not dropped: one in a global variable, or a heap with freed memory that has
// yet to decay. A container with Options.Collect that was dropped is listed, and not reported.
func DroppedOwners() []Dropped {
	var all []Dropped
	for _, d := range owners.All() {
		all = append(all, Dropped(d))
	}
	return all
}

// WriteLeaks writes the results of [Leaks] and [DroppedOwners] as text, and the blocks that were
// live when their heap was closed. Those may be leaks, or the program lets Close free them. Stacks
// have two lines for each function, as in Go's panics, and begin with the caller of this module.
//
// The chunks of an arena or a pool and the tables of a container are blocks of a heap. Their
// heading names the type that holds the memory and the function that allocated it. If such an owner
// was dropped, its blocks are listed besides the owner, since no table tells which are whose.
//
// With FREEHOLD_DEBUG=leak the heaps that are open are listed last. The error is w's.
func WriteLeaks(w io.Writer) error {
	b := bufio.NewWriter(w)
	leaks, closed := Leaks(), leaksAtClose()
	if len(leaks) > 0 || len(closed) == 0 {
		writeLeaks(b, leaks, "live", SampleRate())
	}
	if len(closed) > 0 {
		if len(leaks) > 0 {
			fmt.Fprintln(b)
		}
		writeLeaks(b, closed, "live at Close of their heap", SampleRate())
	}
	dropped, collected := split(owners.All())
	writeOwners(b, dropped, "dropped without Close", " (its blocks, if any, are listed above)")
	writeOwners(b, collected, "closed by the collector", "")
	writeOwners(b, owners.Open("freehold.Heap"), "not closed", "")
	return b.Flush()
}

// split returns the owners that are leaks, and those that the collector closed.
func split(all []owners.Owned) (dropped, collected []owners.Owned) {
	for _, d := range all {
		if d.Collected {
			collected = append(collected, d)
		} else {
			dropped = append(dropped, d)
		}
	}
	return dropped, collected
}

// writeOwners writes owners, with what happened to them and a note. Errors show in Flush.
func writeOwners(b *bufio.Writer, all []owners.Owned, what, note string) {
	for _, d := range all {
		times := ""
		if d.Count > 1 {
			times = fmt.Sprintf(" %d times", d.Count)
		}
		fmt.Fprintf(b, "\n%s %s%s%s, made at:\n%s", d, what, times, note, stacks.Text(d.Stack, ""))
	}
}

// writeLeaks writes blocks that were recorded at a rate. live says when they were live. Errors show
// in Flush.
func writeLeaks(b *bufio.Writer, leaks []Leak, live string, rate int) {
	var blocks, bytes int64
	for _, l := range leaks {
		blocks += l.Blocks
		bytes += l.Bytes
	}
	switch {
	case len(leaks) == 0 && rate == 0:
		fmt.Fprintln(b, "freehold: no block is recorded, so none is listed: see FREEHOLD_DEBUG=leak")
	case len(leaks) == 0 && rate == 1:
		fmt.Fprintln(b, "freehold: no block is live")
	case len(leaks) == 0:
		fmt.Fprintf(b, "freehold: no block is live of those recorded, by one in %d bytes\n", rate)
	case rate > 1:
		fmt.Fprintf(b, "freehold: about %s %s, by %s, estimated from one in %d bytes\n", sum(blocks, bytes), live, number(len(leaks), "stack"), rate)
	default:
		fmt.Fprintf(b, "freehold: %s %s, by %s\n", sum(blocks, bytes), live, number(len(leaks), "stack"))
	}
	writeStacks(b, leaks)
}

func writeStacks(b *bufio.Writer, leaks []Leak) {
	for _, l := range leaks {
		fmt.Fprintf(b, "\n%s of heap %q", sum(l.Blocks, l.Bytes), l.Heap)
		if l.Tag != "" {
			fmt.Fprintf(b, ", tag %q", l.Tag)
		}
		if _, through := stacks.Caller(l.Stack); through != "" {
			fmt.Fprintf(b, ", memory of %s", holder(through))
		}
		fmt.Fprintf(b, ", %s", stacks.At("allocated", l.Stack, ""))
	}
}

// holder returns the type of a method, such as "arena.Arena" for "arena.(*Arena).Alloc", or the
// package of another function.
func holder(function string) string {
	function, _, _ = strings.Cut(function, "[")
	pkg, name, _ := strings.Cut(function, ".")
	if receiver, isMethod := strings.CutPrefix(name, "(*"); isMethod {
		receiver, _, _ = strings.Cut(receiver, ")")
		return pkg + "." + receiver
	}
	return pkg
}

// leaksAtClose is Leaks for the blocks that were live at Close of their heap.
func leaksAtClose() []Leak {
	var closed []Leak
	for _, u := range Profile() {
		if u.CloseObjects > 0 {
			closed = append(closed, Leak{u.Heap, u.Tag, u.Stack, u.CloseObjects, u.CloseBytes})
		}
	}
	slices.SortStableFunc(closed, func(a, b Leak) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return closed
}

// sum returns "2 blocks, 300 bytes".
func sum(blocks, bytes int64) string {
	return number(blocks, "block") + ", " + number(bytes, "byte")
}

// number returns "1 block", or "n blocks" for any other n.
func number[N int | int64](n N, of string) string {
	if n != 1 {
		of += "s"
	}
	return strconv.FormatInt(int64(n), 10) + " " + of
}
