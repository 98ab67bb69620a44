// Locks in race builds: they are on the Go heap, and readers take them.
//
// The race detector does not know memory of the system, and ignores locks there. So it would report
// races on Go data that a Put and a Get order. Tables share a number of locks; no goroutine holds
// two.

//go:build race

package hashmap

import "sync"

// readersLock says that Get takes the table's lock.
const readersLock = true

// sharedLocks are the locks of one map, since fn of Update may use another map.
type sharedLocks struct{ mu [1 << 8]sync.Mutex }

func (m *sharedTables) lock(t table)   { m.locks.of(t).Lock() }
func (m *sharedTables) unlock(t table) { m.locks.of(t).Unlock() }

func (l *sharedLocks) of(t table) *sync.Mutex {
	return &l.mu[uintptr(t.base())/tableBytes%uintptr(len(l.mu))]
}
