// Faults: turns an access to memory that the system cannot provide into an error.

package vm

import "runtime/debug"

// CatchFaults calls f and returns its error. If f, on the same goroutine, accesses an address that
// faults, f ends there by a panic, which runs its deferred calls. CatchFaults then returns
// faulted(addr). If that is nil, the fault is not the caller's, and the panic goes on. So do all
// other panics.
func CatchFaults(f func() error, faulted func(addr uintptr) error) (err error) {
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		p := recover()
		if p == nil {
			return
		}
		if fault, ok := p.(interface{ Addr() uintptr }); ok {
			err = faulted(fault.Addr())
		}
		if err == nil {
			panic(p)
		}
	}()
	return f()
}
