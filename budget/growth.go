// Growth: how far off-heap memory may grow before the goroutine that takes more runs a tick, and
// perhaps waits: see wait.go.

package budget

import "time"

// growth is the state of the goroutines that take off-heap memory.
type growth struct {
	taking     int       // calls of waitForGo that have not returned
	granted    int64     // off-heap memory may grow to this, even while Go holds too much
	shortUntil time.Time // waits are short until then, since a long one was in vain
	resigned   bool      // the next tick may raise Go's limit to the memory that Go holds, once
}

// watermark returns the bytes of off-heap memory beyond which a goroutine calls waitForGo. They
// exceed offHeap by 1/growthShare of the headroom, or by rise if that is less: the growth that
// raises the level. While Go holds too much, each growth beyond granted calls waitForGo. If
// off-heap memory has shrunk since it was granted, granted shrinks too.
func (g *growth) watermark(p plan, offHeap, headroom, rise int64) int64 {
	mark := offHeap + headroom/growthShare
	g.granted = min(g.granted, mark)
	if p.longestWait(headroom) > 0 {
		mark = max(g.granted, offHeap)
	}
	return max(offHeap+min(mark-offHeap, rise), 1) // 0 would be no watermark
}

// resign notes a long wait in vain. Waits are short for shortMultiple times its length.
func (g *growth) resign(now time.Time, waited time.Duration) {
	g.shortUntil, g.resigned = now.Add(shortMultiple*waited), true
}
