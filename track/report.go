// Report: the reports of FREEHOLD_DEBUG at the end of the program.

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

// AtExit writes the reports of the environment variable FREEHOLD_DEBUG to standard error: leak
// writes [WriteLeaks], after a garbage collection that looks for dropped owners, stats writes
// [WriteStats], and poison and quarantine write [WriteMistakes]. Without them AtExit does nothing.
// Make it main's first defer, so that it runs after all other deferred calls have freed their
// memory.
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
		owners.CollectQuietly()
		_ = WriteLeaks(os.Stderr) // nowhere to report an error of standard error
	}
	if heap.KeepsClosed {
		_ = WriteStats(os.Stderr)
	}
}

// WriteMistakes writes the mistakes that FREEHOLD_DEBUG=poison or quarantine would find later, with
// a panic: each freed block in quarantine that was written after its Free, and each live block with
// a write up to 32 bytes behind its end, with their stacks. It writes nothing if there are none. It
// reads all of the quarantine; Alloc and Free wait meanwhile. The error is w's.
func WriteMistakes(w io.Writer) error {
	b := bufio.NewWriter(w)
	var all []string
	heap.EachOpen(func(h *heap.Heap) { all = append(all, h.Watch().WriteMistakes()...) })
	for _, text := range all {
		fmt.Fprintln(b, text)
	}
	return b.Flush()
}

// WriteStats writes [freehold.AllStats], [freehold.AllTags] and [cache.AllStats] as tables, in
// bytes unless a column says otherwise. A heap with guarded blocks, now or before, has a row for
// them. FREEHOLD_DEBUG=stats adds a row for each of the first 1,000 closed heaps, with their
// figures right before Close, which the total leaves out. The error is w's.
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

// closedStats returns heap.Closed, with the figures that WriteStats needs.
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

// writeGuards writes the guard figures of heaps that have any. Errors show in Flush.
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
