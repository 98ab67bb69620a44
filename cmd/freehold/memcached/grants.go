// Grants: memory for commands and replies that do not fit a session's own buffers. All grants
// together stay within a bound (backpressure).
//
//	acquire --> waits --> granted --> released
//	              |          |
//	              |          overdue while others wait: its client is disconnected
//	              refused after twice Options.Write
//
// A session has at most one grant, for its command and the reply, so sessions cannot deadlock.
// Clients wait in two queues that take turns: one for clients that have completed a large command
// or reply before, one for all others. So clients that never complete one delay each of the rest by
// one grant, however many they are.

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

// A grant is one session's permission to allocate large buffers.
type grant struct {
	bytes int
	cut   func()    // disconnects the client, or nil
	due   time.Time // when a held grant becomes overdue
	ready chan bool // receives the outcome of a wait
}

// grants has the held grants of a server and the queues of waiting clients.
type grants struct {
	limit int

	mu      sync.Mutex // guards the following
	used    int
	held    []*grant
	queues  [2][]*grant // of new clients, and of proven ones
	turn    int         // the queue that is served next
	timer   *time.Timer // of the next sweep
	closed  bool
	waited  uint64
	refused uint64
}

// acquire reports whether g was granted within patience. With a patience of 0, it does not wait.
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

// enqueue grants g and leaves ready nil, or queues it and returns true, or refuses it.
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

// giveUp takes g from its queue. It reports whether g was granted before that.
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

// give adds g to the held grants.
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

// sweep disconnects the clients of overdue grants if other clients wait, and sets the timer for the
// next one.
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

// close refuses all waiting and later clients.
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

// figures returns the granted bytes, and the numbers of waits and refusals.
func (gs *grants) figures() (used int, waited, refused uint64) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return gs.used, gs.waited, gs.refused
}
