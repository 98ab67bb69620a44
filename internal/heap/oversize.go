// Oversize: free runs with much memory go back before the others.
//
// A timer ticks ten times per decay while there is such a run. A tick gives back
// as much of their memory as was free at every moment since the last one, so a
// large block that is freed and allocated in a loop keeps its memory. If a run of
// that length was taken meanwhile, the tick gives none back, since more may be
// needed soon: a store that flushes and compacts keeps its memory until it rests.
// What was given back and is needed again within a decay went too early:
// when that is half of it, oversize runs wait like all others for the next eight
// decays.

package heap

const (
	oversizePages = 8 << 20 / pageBytes

	oversizeTicksPerDecay = 10
	oversizeHoldTicks     = 8 * oversizeTicksPerDecay
)

// oversize watches the free runs with at least oversizePages of memory. The
// heap's mu guards it.
//
// Invariants:
//   - dirty == sum of dirty over these runs, and least <= dirty
//   - back <= sent
type oversize struct {
	dirty uintptr // pages
	least uintptr // the lowest dirty since the last tick
	alarm alarm
	busy  bool // a run of oversizePages was taken since the last tick

	sent uintptr // pages given back in the ticks of this decay ...
	back uintptr // ... and how many were needed since
	age  int     // ticks since pages were given back last
	hold int     // ticks for which none are given back
}

// need notes that n pages are taken, clean of which are given memory.
func (o *oversize) need(n, clean uintptr) {
	o.busy = o.busy || n >= oversizePages
	o.back = min(o.back+clean, o.sent)
}

// wakeOversize makes sure that the timer runs. mu is held.
func (p *pageHeap) wakeOversize() {
	if a := &p.oversize.alarm; p.decay > 0 && (!a.set() || a.missed(p.decay)) {
		a.start(p.decay/oversizeTicksPerDecay, p.tickOversize)
	}
}

// tickOversize is one tick.
func (p *pageHeap) tickOversize() {
	p.scavenging.Lock()
	defer p.scavenging.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed.Load() {
		return
	}
	o := &p.oversize
	o.alarm.stop()
	busy := o.busy
	o.busy = false
	o.judge()
	if least := o.least; o.hold == 0 && !busy && least > 0 {
		p.mu.Unlock()
		sent := p.purgeRuns(least, oversizePages)
		p.mu.Lock()
		if o.sent += sent; sent > 0 {
			o.age = 0
		}
	}
	rest := o.least == o.dirty && o.sent == 0 && o.hold == 0 && !busy
	if o.least = o.dirty; !rest {
		p.wakeOversize()
	}
}

// judge is the part of a tick that decides whether pages went too early.
func (o *oversize) judge() {
	o.hold = max(o.hold-1, 0)
	o.age++
	switch {
	case o.sent == 0:
	case o.back >= o.sent/2:
		o.hold = oversizeHoldTicks
		o.sent, o.back = 0, 0
	case o.age >= oversizeTicksPerDecay:
		o.sent, o.back = 0, 0
	}
}
