// Iterator: a loop over the entries that the caller drives, shard by shard.

package bigcache

import (
	"runtime"
	"slices"
	"sync"

	"github.com/freehold-go/freehold/cache"
)

type iteratorError string

func (e iteratorError) Error() string { return string(e) }

// Errors of [EntryInfoIterator.Value]. ErrCannotRetrieveEntry is never returned.
const (
	ErrInvalidIteratorState = iteratorError("Iterator is in invalid state. Use SetNext() to move to next position")
	ErrCannotRetrieveEntry  = iteratorError("Could not retrieve entry from cache")
)

// An EntryInfo is a copy of an entry.
type EntryInfo struct {
	hash  uint64
	flags uint64
	key   string
	value []byte
}

// Key returns the entry's key.
func (e EntryInfo) Key() string { return e.key }

// Hash returns the hash of the entry's key.
func (e EntryInfo) Hash() uint64 { return e.hash }

// Timestamp returns the Unix time at which the entry was written.
func (e EntryInfo) Timestamp() uint64 { return secondOf(e.flags) }

// Value returns the entry's value.
func (e EntryInfo) Value() []byte { return e.value }

// An EntryInfoIterator returns the entries of a cache. Any number of goroutines may call it at the
// same time. It needs no Close.
type EntryInfoIterator struct {
	mu      sync.Mutex
	c       *BigCache
	shard   int      // the next one
	hashes  []uint64 // the hashes of the shard before that are left
	ahead   int      // how many of hashes are prefetched
	current EntryInfo
	valid   bool
}

// Iterator returns an iterator over the entries, in no order.
func (c *BigCache) Iterator() *EntryInfoIterator { return &EntryInfoIterator{c: c} }

// SetNext moves to the next entry, and reports whether there is one. It finds entries that were
// written before it reaches their shard.
func (it *EntryInfoIterator) SetNext() bool {
	it.mu.Lock()
	defer it.mu.Unlock()
	defer runtime.KeepAlive(it.c)
	for {
		for len(it.hashes) == 0 {
			if it.shard == len(it.c.shards) {
				it.valid = false
				return false
			}
			it.hashes = it.c.shards[it.shard].hashes()
			it.shard++
		}
		if it.ahead == 0 {
			it.prefetch()
		}
		hash := it.hashes[0]
		it.hashes = it.hashes[1:]
		it.ahead--
		id := idOf(hash)
		it.valid = it.c.entries.Peek(id[:], func(e cache.Entry) {
			k, v := unwrap(e.Value)
			it.current = EntryInfo{hash, e.Flags, string(k), copied(v)}
		})
		if it.valid {
			return true
		}
	}
}

// prefetch prefetches the next entries, so that their cache misses overlap.
func (it *EntryInfoIterator) prefetch() {
	const most = 16
	var ids [most]id
	var keys [most][]byte
	it.ahead = min(most, len(it.hashes))
	for i, hash := range it.hashes[:it.ahead] {
		ids[i] = idOf(hash)
		keys[i] = ids[i][:]
	}
	it.c.entries.Prefetch(keys[:it.ahead])
}

// hashes returns the hashes of a shard's timestamps, without duplicates.
func (s *shard) hashes() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list[s.head:]
	all := make([]uint64, len(list))
	for i, t := range list {
		all[i] = t.id.hash()
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Value returns the entry that SetNext has moved to. The error is ErrInvalidIteratorState before
// the first SetNext and after the last.
func (it *EntryInfoIterator) Value() (EntryInfo, error) {
	it.mu.Lock()
	defer it.mu.Unlock()
	if !it.valid {
		return EntryInfo{}, ErrInvalidIteratorState
	}
	return it.current, nil
}
