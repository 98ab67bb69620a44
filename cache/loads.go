// Loads: which keys of a shard GetOrLoad is loading, and whether they were written meanwhile. For
// each Restore that runs, also which keys were written since it began.

package cache

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
)

// loads has the loads that are under way for the keys of a shard. The zero value has none.
type loads struct {
	mu  sync.Mutex // guards all
	all map[string]*loading
	n   atomic.Int64 // len(all) + len(restores)

	restores []*marks // of each Restore that is under way
	closed   bool     // no load that begins is stored
}

// marks has the keys of a shard that were written since a Restore began. Hashes with equal low bits
// share a bit, so another key may have set it.
type marks struct {
	cleared bool
	bits    []uint64 // a power of two
}

// markShare is the bytes of a shard's share of the bound for each bit of marks.
const markShare = 128

const wordBits = 64

func (m *marks) bit(h uint64) (word *uint64, mask uint64) {
	return &m.bits[h/wordBits%uint64(len(m.bits))], 1 << (h % wordBits)
}

// A loading is one load. written is set before a write to the key and after it, and read under the
// lock of the key's shard before the loaded value is stored. So that value never replaces the written
// one. The other fields are set before done is closed.
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

// join returns the load of key that is under way, or a new one. first reports that it is new: then
// the caller loads.
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

func (ls *loads) leave(l *loading) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.all[l.key] == l { // else a later load has taken its place
		delete(ls.all, l.key)
	}
	ls.count()
	close(l.done)
}

// written notes that key, with hash h, was written. The caller has the lock of its shard.
func (ls *loads) written(h uint64, key []byte) {
	if ls.n.Load() == 0 {
		return
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, m := range ls.restores {
		word, mask := m.bit(h)
		*word |= mask
	}
	if l := ls.all[string(key)]; l != nil {
		l.written.Store(true)
	}
}

// beginRestore notes in the marks that it returns which keys are written from now on, until
// endRestore. share is the shard's.
func (ls *loads) beginRestore(share int) *marks {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	words := max(share/markShare/wordBits, 1)
	m := &marks{bits: make([]uint64, 1<<bits.Len(uint(words-1)))}
	ls.restores = append(ls.restores, m)
	ls.count()
	return m
}

func (ls *loads) endRestore(m *marks) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	i := slices.Index(ls.restores, m)
	ls.restores = slices.Delete(ls.restores, i, i+1)
	ls.count()
}

// mayRestore reports whether a key with hash h was not written since the Restore of m began. The
// caller has the lock of its shard.
func (ls *loads) mayRestore(m *marks, h uint64) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	word, mask := m.bit(h)
	return !m.cleared && *word&mask == 0
}

// wasCleared reports whether Clear was called since the Restore of m began.
func (ls *loads) wasCleared(m *marks) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return m.cleared
}

// cleared notes that all keys of the shard are about to be deleted.
func (ls *loads) cleared() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.clear()
}

// close is cleared, and no later load is stored.
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
