package pin

import "sync/atomic"

// Wait returns when everybody who holds a place now has left it.
func (p *Places) Wait() {
	if f := onWait.Load(); f != nil {
		(*f)(p)
	}
	p.wait()
}

var onWait atomic.Pointer[func(*Places)]

// OnWait makes each Wait, of any Places, call f before it waits, until restore is
// called. It is for tests of what happens between the two steps in which a thing
// is taken away from the holder of a place. f must not call Wait.
func OnWait(f func(*Places)) (restore func()) {
	onWait.Store(&f)
	return func() { onWait.Store(nil) }
}
