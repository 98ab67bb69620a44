//go:build !race

package hashmap

// readersLock says that Get takes the table's lock.
const readersLock = false

// sharedLocks is empty: see shared_lock_race.go.
type sharedLocks struct{}

func (m *sharedTables) lock(e uintptr)   { headOf(e).mu.Lock() }
func (m *sharedTables) unlock(e uintptr) { headOf(e).mu.Unlock() }
