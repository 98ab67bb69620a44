// Waits: a goroutine that takes off-heap memory waits while Go holds too much.
//
//	off-heap memory grows -> passes the watermark -> waitForGo: a tick, then collections
//
//  1. Each tick sets the watermark (growth.go): off-heap memory plus 1/growthShare of the
//     headroom, or less if the level rises before that. While Go holds too much, it is off-heap
//     memory itself, or the bytes that the last wait granted.
//  2. The goroutine that passes the watermark runs a tick before it uses its memory: the block's
//     fresh pages take no memory before they are touched. The tick lowers Go's limit
//     (step.go): at once if 1/pressShare of the headroom is used up, and else by degrees.
//  3. waitTable (step.go) has the longest wait, by the quarters of the headroom that Go's memory
//     above its room uses up. There is no wait unless Go holds more than it needs. The goroutine
//     collects again and again, and sleeps as long as the last collection took.
//  4. If Go's excess has fallen by 1/worthShare at the end, the wait begins anew. Otherwise the
//     goroutine goes on, and off-heap memory may grow by 1/growthShare of the headroom without
//     another wait.
//  5. After a wait of longWait or more in vain, waits last at most shortWait, for shortMultiple
//     times as long (growth.resign). The next tick may raise Go's limit to the memory that Go
//     holds, once.
//
// Ticks run reclaims too (tick.go), since a program at rest does not collect. waitTable has the
// pause between two of them, by Go's memory above its room or its floor, the larger one.

package budget

import (
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
)

// waitForGo runs in the goroutine whose off-heap memory passes the watermark, before the goroutine
// uses that memory. If Go holds too much, the goroutine waits until Go has given it back.
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

// mustWait ticks, and reports whether the goroutine goes on waiting. If Go has shrunk enough by the
// end of a wait, the wait begins anew. After a long wait in vain, waits are short for a while.
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
