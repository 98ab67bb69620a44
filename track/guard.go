// Guards: blocks that end at inaccessible memory.

package track

import (
	"github.com/freehold-go/freehold/internal/monitor"
	"github.com/freehold-go/freehold/internal/watch"
)

// GuardsPerSecond is the budget of FREEHOLD_DEBUG=guard=1/N.
const GuardsPerSecond = watch.GuardsPerSecond

// SetGuardRate has one block in n guarded, chosen at random, from now on; 1 guards every
// block, 0 none. Of these at most perSecond are guarded in a second, or all if perSecond is
// 0. It returns the old n. Negative values panic. FREEHOLD_DEBUG=guard is
// SetGuardRate(1, 0), and guard=1/N is SetGuardRate(N, GuardsPerSecond), both with
// [StartMonitor].
//
// A guarded block ends at an inaccessible page, as close as its alignment allows. Its memory
// is inaccessible from its Free on, until at least 16,384 others of the heap or 1 GiB of
// addresses were freed after it (64 MiB on 32-bit systems). Under HeapOptions.MaxBytes it is
// one other for each 16 KiB of the limit, and fewer where there is no memory for more. So these fault, at the
// instruction that does it:
//
//   - an access to the block after its Free, or after Close of the heap
//   - an access behind its end, up to a page
//   - an access to the page in front of it
//
// A write between the block and the ends of its pages is found when the block is freed, with
// a panic. A read there is not found. Blocks of more than 1 MiB, those with an alignment
// above a page, those of heaps with WholePages, and blocks of arenas, pools and other
// allocators inside a block of the heap are not guarded. A guarded block cannot be resized
// in place.
//
// See [StartMonitor] and [Explain] for the report of a fault. It costs some microseconds to
// guard and free a block, more with several goroutines (BenchmarkPairGuarded of
// internal/watch), and 4 KiB at least while it is live. On Linux before 6.13, and on other
// systems, 8,192 blocks are guarded at a time at most. In race builds and where memory is Go's
// own, SetGuardRate does nothing. freehold.Stats tells how many blocks are guarded, and how
// many were not for lack of budget or memory.
func SetGuardRate(n, perSecond int) (was int) { return watch.SetGuardRate(n, perSecond) }

// StartMonitor starts a process that reports faults in guarded blocks. Such a fault ends the
// program, as any does, with Go's crash text. The monitor writes to standard error what was hit,
// "use after free at 0x…: byte 8 of a block of 64 bytes": in a line as soon as it has read the
// address, which is near the head of that text, and behind the text again, with the stacks of
// the block's allocation and Free. Of process 1 it writes all of that at once. Of another it
// may write after the program has ended: who reads its output from a file waits a second, and
// from a pipe to its end. FREEHOLD_DEBUG=guard starts it.
//
// The monitor is this program again, from /proc/self/exe, which stops before main. Packages
// that are initialized before those of this module run their init functions in it. It waits,
// takes some MiB of memory, and ends with the program. StartMonitor takes the crash output
// of the process: a later debug.SetCrashOutput replaces it. It works on Linux; elsewhere, and
// where a process may not be started, it returns an error. Another call does nothing. The
// environment variable FREEHOLD_MONITOR is the monitor's: where it is set already, StartMonitor
// returns an error.
//
// The monitor is not the program's child, unless the program is process 1. A wait for any
// child may then return the monitor's end, after somebody killed it. If somebody has stopped
// the monitor, process 1 waits 10 ms for each piece of its crash text, of which each goroutine
// has some tens. Other programs do not wait.
//
// Some 260,000 blocks, 16,000 on 32-bit systems, are known to reports at once, freed ones in
// quarantine included.
func StartMonitor() error { return monitor.Start() }
