// Faults: access to memory that the system cannot provide, as an error.

package vm

import "runtime/debug"

// CatchFaults calls f and returns its error. If f, on the same goroutine, accesses an address that
// faults, CatchFaults ends f and returns faulted(addr), unless that is nil. All other panics pass.
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
