//go:build !race

package hashmap

// readersLock says that Get takes the table's lock.
const readersLock = false

// sharedLocks is empty: see shared_lock_race.go.
type sharedLocks struct{}

func (m *sharedTables) lock(t table) { t.head().mu.Lock() }

func (m *sharedTables) unlock(t table) {
	m.seam.At(leaving)
	t.head().mu.Unlock()
}
