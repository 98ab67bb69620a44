// Loads: the keys of a shard that GetOrLoad is loading, and whether they were written meanwhile.
// Each write also goes to the marks of each Restore that runs: see marks.go.

package cache

import (
	"sync"
	"sync/atomic"
)

// loads has the loads that are under way for the keys of a shard. The zero value has none.
type loads struct {
	n atomic.Int64 // len(all) + len(restores); writers load it without mu

	mu       sync.Mutex // guards the following, and stores to n
	all      map[string]*loading
	restores []*marks // of each Restore that is under way
	closed   bool     // no load that begins is stored
}

// A loading is one load. written is set before another write to the key and after it, and read under
// the lock of the key's shard before the loaded value is stored. So that value never replaces the
// written one. written is also set once the loaded value is stored. The other fields are set before
// done is closed.
//
// Once written is set, no further goroutine joins the load: its value may be older than the write.
type loading struct {
	key     string
	written atomic.Bool
	done    chan struct{}
	value   []byte
	err     error
	again   bool // waiting goroutines load again; it stays so if load panics
}

// join returns the load of key that is under way, or a new one. first says that it is new, and that
// the caller must load and then call leave.
func (ls *loads) join(key []byte) (l *loading, first bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.all[string(key)]; l != nil && !l.written.Load() {
		return l, false
	}
	if ls.all == nil {
		ls.all = map[string]*loading{}
	}
	l = &loading{key: string(key), done: make(chan struct{}), again: true}
	l.written.Store(ls.closed)
	ls.all[l.key] = l
	ls.count()
	return l, true
}

// count updates n. The caller holds mu.
func (ls *loads) count() {
	ls.n.Store(int64(len(ls.all) + len(ls.restores)))
}

// leave ends a load, and wakes the goroutines that wait for it.
func (ls *loads) leave(l *loading) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.all[l.key] == l { // else a later load has taken its place
		delete(ls.all, l.key)
	}
	ls.count()
	close(l.done)
}

// written notes that key, with hash h, was written, by the load own or else nil. The caller has the
// lock of its shard.
func (ls *loads) written(h uint64, key []byte, own *loading) {
	if ls.n.Load() == 0 {
		return
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, m := range ls.restores {
		word, mask := m.bit(h)
		*word |= mask
	}
	if l := ls.all[string(key)]; l != nil && l != own {
		l.written.Store(true)
	}
}

// cleared notes that all keys of the shard are about to be deleted.
func (ls *loads) cleared() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.clear()
}

// close is cleared for the last time: no later load is stored.
func (ls *loads) close() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.closed = true
	ls.clear()
}

// clear is cleared. The caller holds mu.
func (ls *loads) clear() {
	for _, l := range ls.all {
		l.written.Store(true)
	}
	for _, m := range ls.restores {
		m.cleared = true
	}
}
