// Advise: hints to the operating system about memory in use.

package freehold

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/vm"
)

// Advice says how memory will be used. See [Advise].
type Advice int

const (
	AdviceNormal     Advice = iota // no pattern: undoes AdviceSequential and AdviceRandom
	AdviceWillNeed                 // used soon: make it resident
	AdviceDontNeed                 // not used soon: contents become undefined and may be dropped
	AdviceSequential               // read in order, once
	AdviceRandom                   // read in random order: huge pages and read-ahead may not help
	AdviceHugePages                // use huge pages: fewer TLB misses, more resident memory
)

var adviceOf = [...]vm.Advice{
	AdviceNormal:     vm.Normal,
	AdviceWillNeed:   vm.WillNeed,
	AdviceDontNeed:   vm.DontNeed,
	AdviceSequential: vm.Sequential,
	AdviceRandom:     vm.Random,
	AdviceHugePages:  vm.HugePages,
}

// Advise tells the operating system how s will be used. s is a block, a typed slice, or a part of
// either. The advice covers the system pages (4 KiB and up) that are entirely inside s, so it does
// not affect neighbouring blocks. It is a no-op if there are no such pages. It costs a system call.
//
// [AdviceSequential], [AdviceRandom] and [AdviceHugePages] last until the block is freed; Free then
// returns its memory to the system at once. These three and [AdviceNormal] are no-ops for blocks up
// to 32 KiB, which share a mapping with others. With [AdviceHugePages], the first touch of a page
// makes up to 2 MiB of s resident.
//
// Advice is only a hint. Except for [AdviceDontNeed], it never changes the
// contents of s. The error matches [errors.ErrUnsupported] if the system does not
// support the advice or s is not memory of a freehold heap; any other error is
// the system's. On an error nothing has changed, and programs may ignore it. An
// unknown Advice panics.
func Advise[T any](s []T, a Advice) error {
	arg.Range("Advise", "advice", int(a), 0, len(adviceOf)-1)
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
	return pages.Advise(b, adviceOf[a])
}
