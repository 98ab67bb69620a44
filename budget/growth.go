// Growth: the bytes that off-heap memory may grow by before a goroutine that takes more must ask.
//
//	off-heap memory grows -> passes the watermark -> makeRoom (wait.go) -> a tick, and collections
//
// A block's fresh pages take no memory before they are touched, so that is early enough.

package budget

import "time"

// growth is the state of the goroutines that take off-heap memory.
type growth struct {
	taking     int       // calls of makeRoom
	granted    int64     // off-heap memory may grow to it, although Go holds too much
	shortUntil time.Time // waits are short until then, since a long one was in vain
	resigned   bool      // the next tick may raise Go's limit to the memory that Go holds, once
}

// watermark returns the bytes at which off-heap memory asks. It may grow by a part of the
// headroom until the next tick, or until the level rises, which takes rise bytes. While Go holds
// too much, each growth asks, unless a wait that has ended granted it.
func (g *growth) watermark(p plan, offHeap, headroom, rise int64) int64 {
	mark := offHeap + headroom/growthShare
	g.granted = min(g.granted, mark)
	if wait, _ := p.patience(headroom); wait > 0 {
		mark = max(g.granted, offHeap)
	}
	return max(offHeap+min(mark-offHeap, rise), 1)
}

// resign ends a long wait in vain at a time: those for ten times as long are short.
func (g *growth) resign(now time.Time, waited time.Duration) {
	g.shortUntil, g.resigned = now.Add(shortShare*waited), true
}
