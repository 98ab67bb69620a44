package pin

import "sync/atomic"

// Wait returns once every current holder of a slot has left it.
func (h *Holders) Wait() { h.waitFor(false) }

func (h *Holders) waitFor(patient bool) {
	if f := onWait.Load(); f != nil {
		(*f)(h)
	}
	h.wait(patient)
}

var onWait atomic.Pointer[func(*Holders)]

// OnWait makes each Wait, of any Holders, call f before it waits, until restore is called. Tests
// use it to run code between the swap of a value and the wait for its holder. f must not call
// Wait.
func OnWait(f func(*Holders)) (restore func()) {
	onWait.Store(&f)
	return func() { onWait.Store(nil) }
}
