// Advise: what the operating system may be told about memory in use.

package freehold

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/heap"
	"github.com/freehold-go/freehold/internal/vm"
)

// Advice is how memory will be used: see [Advise].
type Advice int

const (
	AdviceNormal     Advice = iota // no particular use: takes back AdviceSequential and AdviceRandom
	AdviceWillNeed                 // soon: have it resident
	AdviceDontNeed                 // not soon: its contents may be dropped, and are undefined from here on
	AdviceSequential               // in order, once
	AdviceRandom                   // in no order: huge pages and read-ahead may not pay
	AdviceHugePages                // in huge pages, where the system has them: fewer TLB misses, coarser memory
)

var adviceOf = [...]vm.Advice{
	AdviceNormal:     vm.Normal,
	AdviceWillNeed:   vm.WillNeed,
	AdviceDontNeed:   vm.DontNeed,
	AdviceSequential: vm.Sequential,
	AdviceRandom:     vm.Random,
	AdviceHugePages:  vm.HugePages,
}

// Advise tells the operating system how s will be used. s is a block, a typed
// slice in one, or a part of either; the advice goes to the system pages (4 KiB
// and up) that lie wholly inside s, so that neighbours are not affected, and
// for a small slice nothing happens. It costs a system call.
//
// [AdviceSequential], [AdviceRandom] and [AdviceHugePages] end with the block:
// Free gives the memory of such a block back to the system at once. Since blocks
// up to 32 KiB share their pages' mapping, these three and [AdviceNormal] are a
// no-op for them. With [AdviceHugePages] up to 2 MiB become resident at the first
// touch of a page, always within s.
//
// Advice is no promise: it never changes what s holds, but for [AdviceDontNeed].
// The error matches [errors.ErrUnsupported] where the system has no such advice
// and where s is not memory of a freehold heap, and is the system's own
// otherwise; nothing has changed then, and programs may ignore it. An Advice that
// does not exist is a panic.
func Advise[T any](s []T, a Advice) error {
	arg.Range("Advise", "advice", int(a), 0, len(adviceOf)-1)
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
	return heap.Advise(b, adviceOf[a])
}
