// Reclaim: collections that return Go's free memory to the system, one at a time.

package budget

import (
	"sync"
	"time"

	"github.com/freehold-go/freehold/internal/lockrank"
)

// reclaims runs the reclaims of a budget.
type reclaims struct {
	// running is locked while a reclaim runs. The reclaim's goroutine unlocks it. Waiters hold it
	// only for a moment.
	running sync.Mutex

	mu    lockrank.Mutex[lockrank.Leaf] // guards the fields below
	runs  bool
	count uint64
	last  endedReclaim
}

// endedReclaim is the record of a reclaim that has ended.
type endedReclaim struct {
	ended time.Time
	took  time.Duration
}

// begin starts a goroutine that collects Go's heap and gives its free memory to the system, unless
// one runs already. Budget.mu is held: a caller that finds another's mark finds running locked too.
func (r *reclaims) begin(g golang, now func() time.Time) {
	if !r.mark() {
		return
	}
	began := now()
	r.running.Lock()
	go func() {
		defer r.running.Unlock()
		g.freeOSMemory()
		ended := now()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.runs, r.last = false, endedReclaim{ended, ended.Sub(began)}
	}()
}

// mark notes that a reclaim begins, or returns false if one runs.
func (r *reclaims) mark() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs {
		return false
	}
	r.runs = true
	r.count++
	return true
}

// wait waits until no reclaim runs.
func (r *reclaims) wait() {
	r.running.Lock()
	defer r.running.Unlock()
}

// soFar returns the number of reclaims and the last one that has ended.
func (r *reclaims) soFar() (count uint64, last endedReclaim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count, r.last
}
