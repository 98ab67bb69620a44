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

// wakeOversize makes sure that the timer runs. h.mu is held.
func (h *Heap) wakeOversize() {
	if a := &h.runs.oversize.alarm; h.decay > 0 && (!a.set() || a.lost(h.decay)) {
		a.start(h.decay/oversizeTicksPerDecay, h.tendOversize)
	}
}

// tendOversize is one tick.
func (h *Heap) tendOversize() {
	h.tending.Lock()
	defer h.tending.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed.Load() {
		return
	}
	o := &h.runs.oversize
	o.alarm.fired()
	busy := o.busy
	o.busy = false
	o.judge()
	if least := o.least; o.hold == 0 && !busy && least > 0 {
		h.mu.Unlock()
		sent := h.purgeRuns(least, oversizePages)
		h.mu.Lock()
		if o.sent += sent; sent > 0 {
			o.age = 0
		}
	}
	rest := o.least == o.dirty && o.sent == 0 && o.hold == 0 && !busy
	if o.least = o.dirty; !rest {
		h.wakeOversize()
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
