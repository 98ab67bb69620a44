// Guards: blocks that end at inaccessible memory.

package track

import (
	"github.com/freehold-go/freehold/internal/monitor"
	"github.com/freehold-go/freehold/internal/watch"
)

// SetGuardRate guards one block in n from now on, chosen at random; 1 guards every block, 0 none.
// It guards at most perSecond blocks a second, or any number if perSecond is 0. It returns the old
// n. Negative values panic. FREEHOLD_DEBUG=guard is SetGuardRate(1, 0), and guard=1/N is
// SetGuardRate(N, 500), both with [StartMonitor].
//
// A guarded block ends at an inaccessible page, as close as its alignment allows. After its Free
// its memory is inaccessible until the heap has freed at least 16,384 other guarded blocks or 1 GiB
// of addresses (64 MiB on 32-bit systems). Under HeapOptions.MaxBytes it is one other block for
// each 16 KiB of the limit, or fewer if memory is short. So these accesses fault, at their
// instruction:
//
//   - to the block after its Free, or after Close of the heap
//   - behind its end, up to a page
//   - to the page in front of it
//
// Free panics if something was written between the block and the ends of its pages. A read there is
// not found. Not guarded are blocks of more than 1 MiB, blocks with an alignment above a page,
// blocks of heaps with WholePages, and the blocks that arenas, pools and other allocators cut from
// a block of the heap. A guarded block cannot be resized in place.
//
// [StartMonitor] and [Explain] report faults. To guard and free a block costs a few microseconds,
// more with several goroutines (BenchmarkPairGuarded of internal/watch). A live one takes at least
// 4 KiB. On Linux before 6.13, and on other systems, at most 8,192 blocks are guarded at a time. In
// race builds, and where memory is Go's own, SetGuardRate does nothing. freehold.Stats counts the
// blocks that are guarded, and the chosen ones that were not for lack of budget or memory.
func SetGuardRate(n, perSecond int) (was int) { return watch.SetGuardRate(n, perSecond) }

// StartMonitor starts a process that reports faults in guarded blocks. A fault ends the program
// with Go's crash text, as any fault does. The monitor reads that text and writes a line to
// standard error, such as "use after free at 0x…: byte 8 of a block of 64 bytes", as soon as it has
// the address. It repeats the line behind the text, with the stacks of the block's allocation and
// Free. If the program is process 1, the monitor writes all of it at once. Otherwise it may write
// after the program has ended: read the output from a pipe to its end, or wait a second before you
// read it from a file. FREEHOLD_DEBUG=guard starts the monitor.
//
// The monitor is this program again, from /proc/self/exe, and stops before main. Packages that are
// initialized before the ones of this module run their init functions in it. It waits, takes a few
// MiB of memory, and ends with the program. StartMonitor takes the crash output of the process: a
// later debug.SetCrashOutput replaces it. It works on Linux; elsewhere, and if no process may be
// started, it returns an error. Another call is a no-op. The environment variable FREEHOLD_MONITOR
// is the monitor's: if it is set already, StartMonitor returns an error.
//
// The monitor is the program's child only if the program is process 1. A wait for any child then
// also returns the monitor, if it is killed. If the monitor is stopped, process 1 waits 10 ms for
// each piece of its crash text; a goroutine's text has dozens of pieces. Other programs do not
// wait.
//
// The monitor knows up to 260,000 blocks at once, 16,000 on 32-bit systems. Freed blocks in
// quarantine count.
func StartMonitor() error { return monitor.Start() }
