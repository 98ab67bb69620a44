// Loads: which keys of a shard GetOrLoad is loading, and whether they were written meanwhile.

package cache

import (
	"sync"
	"sync/atomic"
)

// loads has the loads that are under way for the keys of a shard. The zero value has none.
type loads struct {
	mu  sync.Mutex // guards all
	all map[string]*loading
	n   atomic.Int64 // len(all)
}

// A loading is one load. written is set before a write to the key, and read under the lock of the
// key's shard before the loaded value is stored. So that value never replaces the written one. The
// other fields are set before done is closed.
type loading struct {
	key     string
	written atomic.Bool
	done    chan struct{}
	value   []byte
	err     error
	again   bool // waiting goroutines load again
}

// join returns the load of key that is under way, or a new one. first reports that it is new: then
// the caller loads.
func (ls *loads) join(key []byte) (l *loading, first bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.all[string(key)]; l != nil {
		return l, false
	}
	if ls.all == nil {
		ls.all = map[string]*loading{}
	}
	l = &loading{key: string(key), done: make(chan struct{})}
	ls.all[l.key] = l
	ls.n.Store(int64(len(ls.all)))
	return l, true
}

func (ls *loads) leave(l *loading) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	delete(ls.all, l.key)
	ls.n.Store(int64(len(ls.all)))
	close(l.done)
}

// written notes that key was written. The caller has the lock of its shard.
func (ls *loads) written(key []byte) {
	if ls.n.Load() == 0 {
		return
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.all[string(key)]; l != nil {
		l.written.Store(true)
	}
}

// cleared notes that all keys of the shard are about to be deleted.
func (ls *loads) cleared() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.all {
		l.written.Store(true)
	}
}
