// Oversize: early purge of free runs with 8 MiB of memory or more.
//
// While there are such oversize runs, a timer ticks ten times per decay. Each tick purges as
// many pages as the low-water mark of their dirty pages since the last tick. So a large block
// that is freed and allocated in a loop keeps its memory.
//
//   - If a run of 8 MiB or more was taken since the last tick, the tick purges nothing: the
//     program may need more soon. A store that flushes and compacts keeps its memory until it
//     is idle.
//   - If half of the pages that ticks purged were needed again within a decay, the ticks
//     purged too early. For eight decays they then purge nothing.

package pages

const (
	oversizePages = 8 << 20 / PageBytes

	oversizeTicksPerDecay = 10
	oversizeHoldTicks     = 8 * oversizeTicksPerDecay
)

// oversize watches the free runs with at least oversizePages dirty pages. The page
// heap's mu guards it.
//
// Invariants:
//   - dirty == the sum of dirty over these runs, and least <= dirty
//   - back <= sent
type oversize struct {
	dirty uintptr // pages
	least uintptr // the lowest dirty since the last tick
	Alarm alarm
	busy  bool // a run of oversizePages or more was taken since the last tick

	sent uintptr // pages purged by ticks since judge last reset it
	back uintptr // pages of sent that were needed again
	age  int     // ticks since the last that purged
	hold int     // ticks left that purge nothing
}

// oversizePart returns the share of a free run with the given dirty pages in oversize.dirty.
func oversizePart(dirty uintptr) uintptr {
	if dirty < oversizePages {
		return 0
	}
	return dirty
}

// need records that n pages were taken. clean is the number of these that had no memory: each of
// them counts as purged too early, up to the number purged.
func (o *oversize) need(n, clean uintptr) {
	o.busy = o.busy || n >= oversizePages
	o.back = min(o.back+clean, o.sent)
}

// wakeOversize starts the timer unless it runs. mu is held.
func (p *Heap) wakeOversize() {
	if a := &p.oversize.Alarm; p.decay > 0 && (!a.Set() || a.Missed(p.decay)) {
		a.start(p.decay/oversizeTicksPerDecay, p.tickOversize)
	}
}

// tickOversize is the timer's callback.
func (p *Heap) tickOversize() {
	p.Scavenging.Lock()
	defer p.Scavenging.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Closed.Load() {
		return
	}
	o := &p.oversize
	o.Alarm.Stop()
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

// judge decides at a tick whether pages were purged too early.
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
