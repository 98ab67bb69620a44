// Advice: hints to the system about memory in use.

package vm

import "fmt"

// An Advice is a hint about the use of a range.
type Advice int

const (
	Normal     Advice = iota // undoes Sequential and Random
	Sequential               // read once, in order: read far ahead
	Random                   // read in random order: do not read ahead
	WillNeed                 // used soon: start reading it in
	DontNeed                 // not needed: the system may drop the contents
	Populate                 // fault in every page now: an error instead of SIGBUS on a full disk

	HugePages // use huge pages where the range covers aligned ones

	Guard   // drop the contents; any access faults until Unguard, even after Decommit
	Unguard // undo Guard; the range reads zero

	numAdvices = int(iota)
)

// Advise tells the system how a range is used. Only Populate, Guard and Unguard
// are guaranteed to have an effect. If the system does not support the advice, or
// if it would change Go's own heap ([GoBacked]), the error matches
// [ErrUnsupported].
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
