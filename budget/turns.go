// Turns: work that a wake or a timer starts, never twice at once.
//
// There is no goroutine between turns, and no channel. Both would belong to the testing/synctest
// bubble in which they were made: the bubble could not end before they do, and code outside could
// not use them. A timer belongs to its bubble too, so each start makes another one. A timer whose
// bubble has ended does not fire; the next call of within starts another one.

package budget

import (
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
	"github.com/freehold-go/freehold/internal/lockrank"
)

// turns calls do, never twice at once. do returns the time to the next turn; 0 is none.
type turns struct {
	do    func() (next time.Duration)
	now   func() time.Time
	after func(time.Duration, func()) // time.AfterFunc

	mu    lockrank.Mutex[lockrank.Leaf] // guards the fields below
	runs  bool
	again bool      // wake was called during a turn
	ended bool      // no turn begins
	due   time.Time // when the next turn begins; a timer of another time does nothing
}

// afterFunc is time.AfterFunc without its timer.
func afterFunc(d time.Duration, f func()) { time.AfterFunc(d, f) }

// wake begins a turn in a new goroutine. If a turn runs, another one follows it at once.
func (t *turns) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begin() {
		go t.run()
		return
	}
	t.again = !t.ended // more reads it after the turn that runs
}

// within begins a turn after d, unless one runs or is due earlier.
func (t *turns) within(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.now(); !t.runs && (!pressure.Ahead(now, t.due) || t.due.Sub(now) > d) {
		t.start(d)
	}
}

// drop forgets a wake: the turn that runs has already seen the reason for it.
func (t *turns) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.again = false
}

// end lets no turn begin from now on. One may still run.
func (t *turns) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended, t.again = true, false
}

// begin notes that a turn begins. It returns false if one runs, or after end. mu is held.
func (t *turns) begin() bool {
	if t.runs || t.ended {
		return false
	}
	t.runs, t.due = true, time.Time{}
	return true
}

// start makes the next turn due after d, in place of any other time. mu is held.
func (t *turns) start(d time.Duration) {
	due := t.now().Add(d)
	t.due = due
	t.after(d, func() {
		t.mu.Lock()
		begins := t.due.Equal(due) && t.begin()
		t.mu.Unlock()
		if begins {
			t.run()
		}
	})
}

func (t *turns) run() {
	for t.more(t.do()) {
	}
}

// more ends a turn and reports whether another one begins at once.
func (t *turns) more(next time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.again {
		t.again = false
		return true
	}
	t.runs = false
	if next > 0 && !t.ended {
		t.start(next)
	}
	return false
}
