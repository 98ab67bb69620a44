// Report: what FREEHOLD_DEBUG asks for at the end.

package track

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/internal/heap"
	"github.com/freehold-go/freehold/internal/owners"
)

// AtExit writes the reports that the environment variable FREEHOLD_DEBUG asks for to
// standard error: with leak that of [WriteLeaks], after a garbage collection that looks
// for dropped owners, with stats that of [WriteStats], and with poison or quarantine that of
// [WriteMistakes]. Without them it does nothing.
// Make it main's first defer, so that it runs last: what other deferred calls free is free
// then. Blocks that were live when their heap was closed have a part of their own.
//
//	func main() {
//		defer track.AtExit()
//		...
//
// Go has no hook for the end of a process. Deferred calls run when main returns and when
// main's goroutine panics. They do not run after os.Exit and log.Fatal, a panic in
// another goroutine, a fatal error such as a fault, or a signal that ends the process:
// SIGKILL always, SIGTERM and an interrupt unless the program catches them and returns
// from main. Goroutines that still run then may have live blocks.
func AtExit() {
	_ = WriteMistakes(os.Stderr)
	if owners.On() {
		owners.Collect()
		_ = WriteLeaks(os.Stderr) // nowhere to report an error of standard error
	}
	if heap.KeepsClosed {
		_ = WriteStats(os.Stderr)
	}
}

// WriteMistakes writes what FREEHOLD_DEBUG=poison or quarantine can tell before a call panics
// with it: each freed block in quarantine that was written after its Free, and each live one
// that was written up to 32 bytes behind its end, with their stacks. It writes nothing if there
// are none. It reads all of the quarantine; Alloc and Free wait meanwhile. The error is w's.
func WriteMistakes(w io.Writer) error {
	b := bufio.NewWriter(w)
	var all []string
	heap.EachOpen(func(h *heap.Heap) { all = append(all, h.Watch().WriteMistakes()...) })
	for _, text := range all {
		fmt.Fprintln(b, text)
	}
	return b.Flush()
}

// WriteStats writes the figures of all open heaps, of all tags and of all open caches as text: those of
// [freehold.AllStats], [freehold.AllTags] and [cache.AllStats], in bytes unless they say otherwise. Heaps that
// have had guarded blocks, or were to have some, have a row for these. Under
// FREEHOLD_DEBUG=stats the first 1,000 heaps that were closed have a row too, with their figures
// right before Close, which are no part of the total. The error is w's.
func WriteStats(w io.Writer) error {
	b := bufio.NewWriter(w)
	const row = "%14v %10v %14v %14v %14v  %v\n"
	fmt.Fprintf(b, row, "live", "blocks", "resident", "committed", "refused calls", "heap")
	var all freehold.Stats
	heaps := freehold.AllStats()
	for _, st := range heaps {
		fmt.Fprintf(b, row, st.LiveBytes, st.Live, st.Resident, st.Committed, st.Refusals, fmt.Sprintf("%q", st.Name))
		all.LiveBytes += st.LiveBytes
		all.Live += st.Live
		all.Resident += st.Resident
		all.Committed += st.Committed
		all.Refusals += st.Refusals
	}
	fmt.Fprintf(b, row, all.LiveBytes, all.Live, all.Resident, all.Committed, all.Refusals, "total")
	closed, more := closedStats()
	if len(closed) > 0 {
		fmt.Fprintf(b, row, "live", "blocks", "resident", "committed", "refused calls", "heap, at its Close")
	}
	for _, st := range closed {
		fmt.Fprintf(b, row, st.LiveBytes, st.Live, st.Resident, st.Committed, st.Refusals, fmt.Sprintf("%q", st.Name))
	}
	if more > 0 {
		fmt.Fprintf(b, "and %s closed later\n", number(more, "heap"))
	}
	writeGuards(b, append(heaps, closed...))
	if tags := freehold.AllTags(); len(tags) > 0 {
		fmt.Fprintf(b, row, "live", "blocks", "peak", "allocations", "frees", "tag")
		for _, t := range tags {
			fmt.Fprintf(b, row, t.LiveBytes, t.Live, t.PeakBytes, t.Allocs, t.Frees, fmt.Sprintf("%q", t.Tag))
		}
	}
	if caches := cache.AllStats(); len(caches) > 0 {
		fmt.Fprintf(b, row, "live", "entries", "hits", "misses", "evicted", "cache")
		for _, st := range caches {
			fmt.Fprintf(b, row, st.Live, st.Len, st.Hits, st.Misses, st.Evicted, fmt.Sprintf("%q", st.Name))
		}
	}
	return b.Flush()
}

// closedStats returns the figures of heap.Closed that WriteStats writes.
func closedStats() (all []freehold.Stats, more int) {
	closed, more := heap.Closed()
	for _, st := range closed {
		all = append(all, freehold.Stats{
			Name: st.Name, Live: st.Blocks, LiveBytes: st.Allocated, Resident: st.Resident, Committed: st.Committed, Refusals: st.Refusals,
			Guarded: st.Guarded, GuardedEver: st.GuardedEver, GuardsSkipped: st.GuardsSkipped,
		})
	}
	return all, more
}

// writeGuards writes the guard figures of heaps that have any. Errors are the Flush's.
func writeGuards(b *bufio.Writer, heaps []freehold.Stats) {
	const row = "%14v %10v %14v  %v\n"
	head := false
	for _, st := range heaps {
		if st.GuardedEver == 0 && st.GuardsSkipped == 0 {
			continue
		}
		if !head {
			head = true
			fmt.Fprintf(b, row, "live guards", "ever", "skipped", "heap")
		}
		fmt.Fprintf(b, row, st.Guarded, st.GuardedEver, st.GuardsSkipped, fmt.Sprintf("%q", st.Name))
	}
}
