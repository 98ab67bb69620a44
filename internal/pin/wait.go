package pin

import "sync/atomic"

// Wait returns when everybody who holds a slot now has left it.
func (h *Holders) Wait() { h.waitFor(false) }

func (h *Holders) waitFor(patient bool) {
	if f := onWait.Load(); f != nil {
		(*f)(h)
	}
	h.wait(patient)
}

var onWait atomic.Pointer[func(*Holders)]

// OnWait makes each Wait, of any Holders, call f before it waits, until restore is
// called. It is for tests of what happens between the two steps in which an
// entry is taken away from the holder of a slot. f must not call Wait.
func OnWait(f func(*Holders)) (restore func()) {
	onWait.Store(&f)
	return func() { onWait.Store(nil) }
}
