//go:build !race

package hashmap

// readersLock says that Get takes the table's lock.
const readersLock = false

// shardedLocks is empty: see sharded_lock_race.go.
type shardedLocks struct{}

func (m *shardedTables) lock(e uintptr)   { headOf(e).mu.Lock() }
func (m *shardedTables) unlock(e uintptr) { headOf(e).mu.Unlock() }
