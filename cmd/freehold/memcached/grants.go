// Grants: memory for commands and replies that do not fit a session's own buffers. All grants together stay
// within a bound (backpressure).
//
//	acquire --> waits --> granted --> released
//	              |          |
//	              |          overdue while others wait: its client is disconnected
//	              refused after twice Options.Write
//
// A session has one grant at a time, for all that its command needs, so sessions cannot wait for each
// other in a circle. Clients wait in two queues, which take turns: those that have completed a large
// command or reply before, and all others. So any number of clients that never complete one delay the
// rest by at most one of them at a time.

package memcached

import (
	"slices"
	"sync"
	"time"
)

// A grant is overdue after grantGrace, and a second more for each grantRate bytes.
const (
	grantGrace = time.Second
	grantRate  = 4 << 20
)

// A grant is for one session's large buffers.
type grant struct {
	bytes int
	cut   func()    // disconnects the client; nil if that cannot be
	due   time.Time // when it is overdue, once it is granted
	ready chan bool // gets whether it is granted, once it has waited
}

// grants has the grants of a server, and the clients that wait for one.
type grants struct {
	limit int

	mu      sync.Mutex // guards the following
	used    int
	held    []*grant
	queues  [2][]*grant // of clients that have not proved themselves, and of those that have
	turn    int         // whose is the next
	timer   *time.Timer // of the next sweep
	closed  bool
	waited  uint64
	refused uint64
}

// acquire grants g, or reports that it cannot within patience. Who has none, 0, does not wait.
func (gs *grants) acquire(g *grant, proven bool, patience time.Duration) bool {
	if !gs.enqueue(g, proven, patience > 0) {
		return g.ready == nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case ok := <-g.ready:
		return ok
	case <-timer.C:
		return gs.giveUp(g)
	}
}

// enqueue grants g at once, and leaves ready nil, or reports whether g waits.
func (gs *grants) enqueue(g *grant, proven, wait bool) (waits bool) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g.ready = nil
	if len(gs.queues[0])+len(gs.queues[1]) == 0 && gs.used+g.bytes <= gs.limit {
		gs.give(g)
		return false
	}
	g.ready = make(chan bool, 1)
	if !wait || gs.closed || g.bytes > gs.limit {
		gs.refused += uint64(bit(wait))
		return false
	}
	gs.waited++
	gs.queues[bit(proven)] = append(gs.queues[bit(proven)], g)
	gs.sweep()
	return true
}

// giveUp ends the wait of g, and reports whether it was granted meanwhile.
func (gs *grants) giveUp(g *grant) bool {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	for i, q := range gs.queues {
		if at := slices.Index(q, g); at >= 0 {
			gs.queues[i] = slices.Delete(q, at, at+1)
			gs.refused++
			gs.serve()
			return false
		}
	}
	return <-g.ready
}

// release ends a grant.
func (gs *grants) release(g *grant) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	gs.used -= g.bytes
	at := slices.Index(gs.held, g)
	gs.held = slices.Delete(gs.held, at, at+1)
	gs.serve()
}

// give makes g one that is held.
func (gs *grants) give(g *grant) {
	gs.used += g.bytes
	g.due = time.Now().Add(grantGrace + time.Duration(g.bytes)*time.Second/grantRate)
	gs.held = append(gs.held, g)
}

// serve grants the waiting clients, in their order, as long as there is room.
func (gs *grants) serve() {
	for {
		if len(gs.queues[gs.turn]) == 0 {
			gs.turn = 1 - gs.turn
		}
		q := gs.queues[gs.turn]
		if len(q) == 0 || gs.used+q[0].bytes > gs.limit {
			break
		}
		gs.give(q[0])
		q[0].ready <- true
		gs.queues[gs.turn] = slices.Delete(q, 0, 1)
		gs.turn = 1 - gs.turn
	}
	gs.sweep()
}

// sweep disconnects the clients of overdue grants while others wait, and again when the next is overdue.
func (gs *grants) sweep() {
	if gs.timer != nil {
		gs.timer.Stop()
		gs.timer = nil
	}
	if len(gs.queues[0])+len(gs.queues[1]) == 0 {
		return
	}
	now, next := time.Now(), time.Time{}
	for _, g := range gs.held {
		switch {
		case g.cut == nil:
		case !g.due.After(now):
			g.cut()
			g.cut = nil
		case next.IsZero() || g.due.Before(next):
			next = g.due
		}
	}
	if !next.IsZero() {
		gs.timer = time.AfterFunc(next.Sub(now), func() {
			gs.mu.Lock()
			defer gs.mu.Unlock()
			gs.sweep()
		})
	}
}

// close refuses all who wait, and who come later.
func (gs *grants) close() {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	gs.closed = true
	for i, q := range gs.queues {
		for _, g := range q {
			g.ready <- false
		}
		gs.queues[i] = nil
	}
	gs.sweep()
}

// figures returns the bytes that are granted, how many waited, and how many were refused.
func (gs *grants) figures() (used int, waited, refused uint64) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return gs.used, gs.waited, gs.refused
}
