// Track: off-heap memory by call stack, from samples.

// Package track shows which code allocates a program's off-heap memory, and which code uses it
// wrongly:
//
//   - [Profile]: allocations and frees of each call stack, estimated from samples of the blocks of
//     every [freehold.Heap]; package profile writes it for go tool pprof
//   - [Leaks], [WriteLeaks]: the live blocks by stack, all of them at rate 1
//   - [DroppedOwners]: heaps, arenas, pools, buffers and containers that were dropped
//     without Close
//   - [WriteStats]: the figures of all heaps and caches, and of the tags of [freehold.Tagged]
//   - [AtExit]: the reports of leaks, figures and late writes at the end of main
//   - [WriteMistakes]: writes after Free and behind blocks that no call has found yet
//   - [SetGuardRate]: blocks at inaccessible pages, which find a use after Free and an
//     overflow at the instruction; [StartMonitor] reports which block it was, and
//     [Explain] does for a fault that is recovered
//   - [CheckPointers]: words in live blocks that point into the Go heap
//   - package track/web: a page about a running process
//
// All of it is off by default, and costs nothing while it is off. Calls turn it on, and so does the
// environment variable FREEHOLD_DEBUG when the program starts, without a rebuild. Its value is a
// list, separated by commas, of
//
//   - profile, or profile=BYTES: sampling at [DefaultSampleRate], or another rate. The import
//     of package profile turns it on too.
//   - leak: sampling at rate 1, unless profile is given too, and the report of [AtExit]. Owners
//     that are dropped without Close are reported at once.
//   - stats: the figures of all heaps and tags in [AtExit].
//   - guard, or guard=1/N: every block, or one in N, is guarded, and faults are reported.
//   - poison: freed blocks and 32 bytes behind each live block are filled and later checked. A
//     write to them panics with the stacks of the Alloc and the Free. Each heap keeps the last
//     1 MiB of its freed blocks back for that.
//   - quarantine=BYTES: as poison, and each heap keeps BYTES of freed blocks back. BYTES is 4096
//     at least; a block that is larger than BYTES is reused at once, and not checked.
//
// Poison finds a write behind a block in the Free or Resize of the block. It finds a write to a
// freed block in a later Alloc of the heap: an Alloc of n bytes checks n + 1,024 bytes of the freed
// blocks. Free checks a block that it moves out of the quarantine; Trim and Close check all of
// them. A program that ends before such a call finds nothing, unless main defers [AtExit]. Without
// it, leak and stats report nothing at the end of a program either.
//
// docs/debugging.md leads from the symptom to the tool, with the output of each.
package track

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/freehold-go/freehold/internal/stacks"
	"github.com/freehold-go/freehold/internal/watch"
)

// DefaultSampleRate is the rate of FREEHOLD_DEBUG=profile and of package profile, in bytes. Go's
// memory profile has the same.
const DefaultSampleRate = watch.DefaultSampleRate

// SampleRate returns the rate, 0 if sampling is off.
func SampleRate() int { return watch.SampleRate() }

// SetSampleRate sets the rate and returns the old one. On average one block is sampled for each
// rate bytes that heaps hand out. 1 samples every block, 0 none. A negative rate panics. The rate
// holds for allocations after the call; blocks sampled before are tracked until they are freed.
//
// While sampling is on, Alloc counts bytes, and a sampled block takes as long as dozens of others
// (BenchmarkPairSampled of internal/watch). A sample takes 64 bytes off-heap while its block is
// live, and a stack takes up to 1 KiB for good. At most 65,535 stacks are kept. SetSampleRate
// drains the caches of all heaps, which stops the world for microseconds for each.
func SetSampleRate(bytes int) (was int) { return watch.SetSampleRate(bytes) }

// Usage counts the allocations and frees of one call stack in one heap and for one tag since
// sampling began, estimated from the sampled blocks. Each sampled block of n bytes counts for
// 1/(1-exp(-n/rate)) blocks, which is right on average at any rate and needs no more scaling. With
// k samples, the relative error is about 1/sqrt(k). At rate 1 the figures are exact for the first
// 65,535 stacks.
//
// Resize counts as the Free of the old size and the Alloc of the new one, in place too.
// Close of a heap counts as the Free of its blocks.
type Usage struct {
	Heap         string    // the heap's name; "(other)" if there are more stacks or names than are kept
	Tag          string    // the path of the freehold.Tagged that allocated; "" if there is none
	Stack        []uintptr // program counters, for runtime.CallersFrames; nil for other stacks
	AllocObjects int64     // blocks
	AllocBytes   int64     // the bytes asked for
	FreeObjects  int64
	FreeBytes    int64
	CloseObjects int64 // blocks that were live at Close of their heap; part of FreeObjects
	CloseBytes   int64 // part of FreeBytes
}

// InUseObjects returns the number of live blocks.
func (u *Usage) InUseObjects() int64 { return u.AllocObjects - u.FreeObjects }

// InUseBytes returns the bytes in live blocks.
func (u *Usage) InUseBytes() int64 { return u.AllocBytes - u.FreeBytes }

// Profile returns the usage of each stack, heap and tag that has a sample, the most bytes in
// use first. Stacks begin with the caller of this module: they leave out the frames of package
// freehold, its internals and accounts, but not the frames of arena, pool and other packages.
//
// It takes about a microsecond for each stack. Other goroutines may allocate meanwhile.
func Profile() []Usage {
	type key struct{ heap, tag, stack string }
	var all []Usage
	at := map[key]int{}
	for _, u := range watch.Profile() {
		u := Usage(u)
		u.Stack = stacks.Outside(u.Stack)
		// Stacks differ in the frames that are left out.
		k := key{u.Heap, u.Tag, keyOf(u.Stack)}
		i, found := at[k]
		if !found {
			at[k] = len(all)
			all = append(all, u)
			continue
		}
		all[i].AllocObjects += u.AllocObjects
		all[i].AllocBytes += u.AllocBytes
		all[i].FreeObjects += u.FreeObjects
		all[i].FreeBytes += u.FreeBytes
		all[i].CloseObjects += u.CloseObjects
		all[i].CloseBytes += u.CloseBytes
	}
	slices.SortStableFunc(all, func(a, b Usage) int { return cmp.Compare(b.InUseBytes(), a.InUseBytes()) })
	return all
}

// keyOf returns a stack as a string.
func keyOf(stack []uintptr) string {
	var b []byte
	for _, pc := range stack {
		b = binary.NativeEndian.AppendUint64(b, uint64(pc))
	}
	return string(b)
}
