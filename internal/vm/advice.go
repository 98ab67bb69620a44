// Advice: what the system may be told about memory that is in use.

package vm

import "fmt"

// An Advice is what Advise tells the system about a range.
type Advice int

const (
	Normal     Advice = iota // take back Sequential and Random
	Sequential               // will be read once, in order: read far ahead
	Random                   // will be read in no order: do not read ahead
	WillNeed                 // will be used soon: start reading it in
	DontNeed                 // not needed: the contents may be dropped, or not
	Populate                 // fault every page in now; an error instead of SIGBUS on a full disk

	HugePages   // back it by huge pages where they are aligned
	NoHugePages // never by huge pages
	Collapse    // make huge pages of it now

	NoDump // leave it out of core dumps
	Dump   // take it in again
	NoFork // a forked child does not get it
	Fork   // a forked child gets it again

	Guard   // drop the contents; any access faults until Unguard, even after Decommit
	Unguard // take Guard back; the range reads zero

	numAdvices = int(iota)
)

// Advise tells the system how a range is used. Only Populate, Guard and Unguard
// are promises; the rest may have no effect. Where there is no such advice, or
// it would change Go's own heap ([GoBacked]), the error matches [ErrUnsupported].
func Advise(addr, size uintptr, a Advice) error {
	check(OpAdvise, addr, size)
	if a < 0 || int(a) >= numAdvices {
		panic(fmt.Sprintf("freehold: vm: advice %d does not exist", a))
	}
	return do(OpAdvise, addr, size, func(addr, size uintptr) error {
		if GoBacked && a >= HugePages {
			return ErrUnsupported
		}
		return advise(addr, size, a)
	})
}
