// Locks in race builds: on the Go heap, and readers take them.
//
// The race detector does not see memory of the system, and takes no lock there for one. So
// it would report races on a program's Go data that a Put and a Get order. A table's
// lock is one of many that tables share; nobody holds two.

//go:build race

package hashmap

import "sync"

// readersLock says that Get takes the table's lock.
const readersLock = true

// sharedLocks are those of one map: fn of Update may use another.
type sharedLocks struct{ mu [1 << 8]sync.Mutex }

func (m *sharedTables) lock(e uintptr)   { m.locks.of(e).Lock() }
func (m *sharedTables) unlock(e uintptr) { m.locks.of(e).Unlock() }

func (l *sharedLocks) of(e uintptr) *sync.Mutex {
	return &l.mu[tableOf(e)/tableBytes%uintptr(len(l.mu))]
}
