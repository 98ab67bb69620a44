// Waits: a goroutine that takes off-heap memory waits while Go holds too much.
//
//	off-heap memory grows -> passes the watermark -> waitForGo: a tick, then collections
//
// The picture in step.go shows Go's room and its floor. plan.over is the memory that Go holds above
// its room. plan.excess is the memory that it holds above both.
//
//  1. Each tick sets the watermark (growth.go): off-heap memory plus 1/growthShare of the
//     headroom, or less if a smaller growth raises the level of the pressure. While Go holds too
//     much, the watermark is off-heap memory itself, or the bytes that the last wait granted.
//  2. The goroutine that passes the watermark runs a tick before it touches its new pages, which
//     take no memory until then. The tick lowers Go's limit (step.go): at once if 1/pressShare of
//     the headroom is used up, and else by degrees.
//  3. The goroutine collects again and again. Between two collections it sleeps for as long as the
//     last one took. waitTable (step.go) has the longest wait for each part of the headroom that
//     plan.over uses up. There is no wait while plan.excess is at most plan.spare.
//  4. If plan.excess has fallen by 1/worthShare at the end, the wait begins anew. Otherwise the
//     goroutine goes on, and off-heap memory may grow by 1/growthShare of the headroom without
//     another wait.
//  5. A wait of longWait or more may be in vain. Then waits last at most shortWait for a while:
//     shortMultiple times the length of that wait (growth.resign). The next tick may raise Go's
//     limit, once, to just above the memory that Go holds.
//
// Ticks run reclaims too (tick.go), since a program at rest does not collect. waitTable has the
// pause between two of them for each part of the headroom that plan.excess uses up.

package budget

import (
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
)

// waitForGo runs in the goroutine that passes the watermark, before the goroutine touches its new
// memory. If Go holds too much, the goroutine waits for Go to give it back.
//
// One collection may not be enough: live objects are scattered over the spans of a heap that was
// large, and a span becomes free only when the program has replaced all of its objects. So the
// goroutine waits for several collections, and lets the program run between them.
func (b *Budget) waitForGo() {
	b.addTaking(1)
	defer b.addTaking(-1)
	w := wait{began: b.system.now(), excess: -1}
	for b.mustWait(&w) {
		b.reclaimAndWait()
		if !b.mustWait(&w) {
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

// mustWait ticks, and reports whether the goroutine goes on waiting: steps 3 to 5.
func (b *Budget) mustWait(w *wait) bool {
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
	longest := b.plan.longestWait(b.currentHeadroom())
	switch {
	case pressure.Ahead(now, b.growth.shortUntil):
		longest = min(longest, shortWait)
	case longest > time.Second: // enough for manyReclaims, even on a slow machine
		_, last := b.reclaims.soFar()
		longest = max(longest, manyReclaims*last.took)
	}
	if waited < longest {
		return true
	}
	worth := b.plan.excess <= w.excess-w.excess/worthShare
	if longest > 0 && worth {
		*w = wait{now, b.plan.excess}
		return true
	}
	if waited >= longWait && !worth {
		b.growth.resign(now, waited)
	}
	if longest > 0 {
		offHeap, headroom := b.system.offHeap(), b.currentHeadroom()
		b.growth.granted = offHeap + headroom/growthShare
		b.system.watermark(b.growth.watermark(b.plan, offHeap, headroom, b.alarm.rise))
	}
	return false
}
