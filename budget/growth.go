// Growth: who takes off-heap memory waits while Go's heap is in its way.
//
//	off-heap memory grows -> passes the watermark -> makeRoom: collections, until Go holds less
//
// A block's fresh pages take no memory before they are touched, so that is early enough.

package budget

import (
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
)

// setWatermark lets off-heap memory grow by a part of the headroom until the next look, or until
// the level rises. While Go holds too much, each growth asks, unless it was granted by a wait
// that has ended. mu is held.
func (b *Budget) setWatermark(offHeap int64) {
	mark := offHeap + b.headroom()/growthShare
	b.granted = min(b.granted, mark)
	if wait, _ := b.plan.patience(b.headroom()); wait > 0 {
		mark = max(b.granted, offHeap)
	}
	b.system.watermark(max(offHeap+min(mark-offHeap, b.rise), 1))
}

// makeRoom is called by who takes off-heap memory, before it is used, when that has grown by
// a part of the headroom since the last tick. So Go's limit falls at once, and if Go holds too
// much, the caller waits until it is given back.
//
// One collection need not be enough: live objects are scattered over the spans of a heap that
// was large, and those become free only as the program replaces them. So the caller waits for
// several, and lets the program run between them.
func (b *Budget) makeRoom() {
	b.addTaking(1)
	defer b.addTaking(-1)
	w := wait{began: b.system.now(), excess: -1}
	for b.waits(&w) {
		b.collect()
		if !b.waits(&w) {
			return
		}
		b.mu.Lock()
		took := b.reclaimTook
		b.mu.Unlock()
		b.system.sleep(max(took, tickTime))
	}
}

func (b *Budget) addTaking(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taking += n
}

// wait is that of one who takes off-heap memory.
type wait struct {
	began  time.Time
	excess int64 // then; -1 if that is not known yet
}

// waits reports whether a wait goes on, after a look at the figures. One that has been worth it
// begins anew. A long one that has not is the last for a while.
func (b *Budget) waits(w *wait) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.update()
	now := b.system.now()
	if b.stopped {
		return false
	}
	if w.excess < 0 {
		w.excess = b.plan.excess
	}
	waited := now.Sub(w.began)
	patience, _ := b.plan.patience(b.headroom())
	switch {
	case pressure.Ahead(now, b.shortUntil):
		patience = min(patience, shortWait)
	case patience > time.Second: // also on a slow machine
		patience = max(patience, manyReclaims*b.reclaimTook)
	}
	if waited < patience {
		return true
	}
	worth := b.plan.excess <= w.excess-w.excess/worthShare
	if patience > 0 && worth {
		*w = wait{now, b.plan.excess}
		return true
	}
	if waited >= longWait && !worth {
		b.shortUntil, b.resigned = now.Add(shortShare*waited), true
	}
	if patience > 0 {
		offHeap := b.system.offHeap()
		b.granted = offHeap + b.headroom()/growthShare
		b.setWatermark(offHeap)
	}
	return false
}

// collect waits for a reclaim.
func (b *Budget) collect() {
	b.mu.Lock()
	b.reclaim()
	b.mu.Unlock()
	b.awaitReclaim()
}

// awaitReclaim waits for the reclaim that runs, if one does. mu is not held.
func (b *Budget) awaitReclaim() {
	b.collecting.Lock()
	defer b.collecting.Unlock()
}

// reclaim has Go's heap collected and given back, in a goroutine, unless that is going on, or the
// budget has stopped. Ticks do so for a part of the time at most. mu is held.
func (b *Budget) reclaim() {
	if b.stopped || b.reclaiming {
		return
	}
	b.reclaiming = true
	b.reclaims++
	began := b.system.now()
	b.collecting.Lock() // others keep it for no time
	go func() {
		defer b.collecting.Unlock()
		b.system.golang.reclaim()
		now := b.system.now()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.reclaiming = false
		b.reclaimed, b.reclaimTook = now, now.Sub(began)
	}()
}
