// Track: who has the off-heap memory.

// Package track shows where a program's off-heap memory comes from.
//
// [Profile] is to off-heap memory what runtime.MemProfile is to the Go heap: an estimate,
// from samples, of what each call stack allocated and freed. It covers the blocks of every
// [freehold.Heap], and with them what arenas, pools and buffers take from one. The
// package profile, a module of its own, writes it in the format of go tool pprof.
//
// [Leaks] lists the blocks that are live, by stack: those that were sampled, which at rate
// 1 are all. [NewTracker] records all blocks of one allocator, whatever the rate.
//
// Sampling is off until [SetSampleRate] is called, the package profile is imported, or the
// program is started with the environment variable FREEHOLD_DEBUG, a list of
//
//   - profile, or profile=BYTES: sampling at [DefaultSampleRate], or another rate,
//   - leak: sampling at rate 1, unless profile is given too, and the report of [AtExit]; owners
//     such as heaps, arenas and pools that are dropped without Close are reported at once,
//   - stats: the figures of all heaps and tags in [AtExit].
//
// It costs nothing while it is off.
package track

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/freehold-go/freehold/internal/heap"
	"github.com/freehold-go/freehold/internal/stacks"
)

// DefaultSampleRate is the rate of FREEHOLD_DEBUG=profile and of the package profile, in
// bytes: that of Go's memory profile.
const DefaultSampleRate = heap.DefaultSampleRate

// SampleRate returns the rate, 0 if sampling is off.
func SampleRate() int { return heap.SampleRate() }

// SetSampleRate sets the rate and returns the old one: of the bytes that heaps hand out,
// one in bytes is picked on average, and its block is sampled. 1 samples every block, 0
// none. A negative rate panics. The rate holds for allocations after the call; blocks that
// were sampled before are tracked until they are freed.
//
// While sampling is on, Alloc counts bytes, and a sampled block takes as long as some tens of
// others (BenchmarkPairSampled of internal/heap). A sample takes 64
// bytes off-heap while its block is live, and a stack up to 1 KiB for good. At most 65,535
// stacks are kept. SetSampleRate drains the caches of all heaps, which stops the world for
// microseconds for each.
func SetSampleRate(bytes int) (was int) { return heap.SetSampleRate(bytes) }

// Usage is what one call stack allocated and freed in one heap and for one tag since sampling began, as
// estimated from the sampled blocks. Each sampled block of n bytes counts for
// 1/(1-exp(-n/rate)) blocks, which is right on average at any rate and need not be scaled
// again. With k samples, the relative error is about 1/sqrt(k). At rate 1 the figures are
// exact, but for other stacks than the first 65,535.
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
// use first. Stacks begin with the caller of this module: the frames of package freehold
// and its internals are left out; those of arena, pool and other packages are not.
//
// It takes about a microsecond for each stack. Other goroutines may allocate meanwhile.
func Profile() []Usage {
	type key struct{ heap, tag, stack string }
	var all []Usage
	at := map[key]int{}
	for _, u := range heap.Profile() {
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
