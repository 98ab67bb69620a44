// Waits: a goroutine that takes off-heap memory waits while Go holds too much.

package budget

import (
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
)

// makeRoom runs in the goroutine whose off-heap memory passes the watermark, before the goroutine
// uses that memory. Go's limit falls at once. If Go holds too much, the goroutine waits until Go
// has given it back.
//
// One collection may not be enough: live objects are scattered over the spans of a heap that was
// large, and a span becomes free only when the program has replaced all of its objects. So the
// goroutine waits for several collections, and lets the program run between them.
func (b *Budget) makeRoom() {
	b.addTaking(1)
	defer b.addTaking(-1)
	w := wait{began: b.system.now(), excess: -1}
	for b.waits(&w) {
		b.reclaimAndWait()
		if !b.waits(&w) {
			return
		}
		_, last := b.reclaims.soFar()
		b.system.sleep(max(last.took, tickTime))
	}
}

func (b *Budget) addTaking(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.growth.taking += n
}

// wait is the wait of one goroutine.
type wait struct {
	began  time.Time
	excess int64 // plan.excess at began; -1 before the first tick
}

// waits ticks, and reports whether the goroutine goes on waiting. If Go has shrunk enough by the
// end of a wait, the wait begins anew. After a long wait in vain, waits are short for a while.
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
	patience, _ := b.plan.patience(b.currentHeadroom())
	switch {
	case pressure.Ahead(now, b.growth.shortUntil):
		patience = min(patience, shortWait)
	case patience > time.Second: // enough for manyReclaims, even on a slow machine
		_, last := b.reclaims.soFar()
		patience = max(patience, manyReclaims*last.took)
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
		b.growth.resign(now, waited)
	}
	if patience > 0 {
		offHeap, headroom := b.system.offHeap(), b.currentHeadroom()
		b.growth.granted = offHeap + headroom/growthShare
		b.system.watermark(b.growth.watermark(b.plan, offHeap, headroom, b.alarm.rise))
	}
	return false
}
