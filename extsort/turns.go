// Turns: parts are merged at the same time and written one after the other.

package extsort

import "sync"

type turns struct {
	mu    sync.Mutex
	cond  sync.Cond
	now   int  // the part that may write
	ended bool // by an error: nobody waits any more
}

// wait returns when it is the part's turn, or false if there will be none.
func (t *turns) wait(part int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.now != part && !t.ended {
		t.cond.Wait()
	}
	return !t.ended
}

func (t *turns) pass() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now++
	t.cond.Broadcast()
}

func (t *turns) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.cond.Broadcast()
}
