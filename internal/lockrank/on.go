//go:build freehold_ranks && amd64

package lockrank

import (
	"fmt"
	"slices"
	"sync"
)

var order = []any{
	Running{}, Relief{}, Budget{}, Settings{}, Registry{}, Scavenging{}, Counting{}, Guards{}, Homes{},
	Depot{}, Central{}, Caches{}, Pages{}, Records{}, Space{}, Ledger{}, Leaf{},
}

// Mutex is a sync.Mutex with a rank. Lock panics if the goroutine holds a Mutex of the same or a
// later rank.
type Mutex[Rank any] struct{ sync.Mutex }

func (m *Mutex[Rank]) Lock() {
	mustComeAfter(*new(Rank))
	m.Mutex.Lock()
	take(m, *new(Rank))
}

// TryLock does not wait, so it cannot deadlock: any order is allowed.
func (m *Mutex[Rank]) TryLock() bool {
	ok := m.Mutex.TryLock()
	if ok {
		take(m, *new(Rank))
	}
	return ok
}

func (m *Mutex[Rank]) Unlock() {
	drop(m)
	m.Mutex.Unlock()
}

// held maps the address of each goroutine's g to the locks that it holds.
var held struct {
	mu sync.Mutex
	by map[uintptr][]lock
}

// lock is a Mutex that is held.
type lock struct{ mutex, rank any }

// g returns the address of the goroutine's g.
func g() uintptr

func mustComeAfter(rank any) {
	held.mu.Lock()
	defer held.mu.Unlock()
	locks := held.by[g()]
	if n := len(locks); n > 0 {
		last := locks[n-1]
		if last.rank == any(Records{}) && rank == any(Pages{}) {
			return // the Pages of the records' own memory
		}
		if rank == any(Depot{}) && last.rank == rank && slices.ContainsFunc(locks, func(l lock) bool { return l.rank == any(Homes{}) }) {
			return // the Depots of all homes
		}
	}
	for _, l := range locks {
		if slices.Index(order, l.rank) >= slices.Index(order, rank) {
			panic(fmt.Sprintf("lockrank: %T is taken under %T", rank, l.rank))
		}
	}
}

func take(mutex, rank any) {
	held.mu.Lock()
	defer held.mu.Unlock()
	if held.by == nil {
		held.by = map[uintptr][]lock{}
	}
	held.by[g()] = append(held.by[g()], lock{mutex, rank})
}

func drop(mutex any) {
	held.mu.Lock()
	defer held.mu.Unlock()
	locks := held.by[g()]
	i := slices.IndexFunc(locks, func(l lock) bool { return l.mutex == mutex })
	if i < 0 {
		panic(fmt.Sprintf("lockrank: Unlock of %T by a goroutine that did not lock it", mutex))
	}
	held.by[g()] = slices.Delete(locks, i, i+1)
}
