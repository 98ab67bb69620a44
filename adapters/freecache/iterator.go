// Iterator: a loop over the entries that the caller drives.

package freecache

import (
	"iter"
	"runtime"
)

// An Iterator returns the entries of a Cache. It is for one goroutine at a time. It needs no Close.
type Iterator struct{ next func() (*Entry, bool) }

// An Entry is a copy of a key and its value, with the second at which it expires, or 0.
type Entry struct {
	Key      []byte
	Value    []byte
	ExpireAt uint32
}

// NewIterator returns an iterator over the entries that have not expired, in no order. An entry
// that the cache moves meanwhile may be seen twice or not at all.
func (c *Cache) NewIterator() *Iterator {
	next, stop := iter.Pull(func(yield func(*Entry) bool) {
		for key, e := range c.entries.All() {
			if !c.hasExpired(e) && !yield(&Entry{copyTo(nil, key), copyTo(nil, e.Value), uint32(e.Flags)}) {
				return
			}
		}
	})
	it := &Iterator{next}
	runtime.AddCleanup(it, func(stop func()) { stop() }, stop)
	return it
}

// Next returns the next entry, or nil if there is none left.
func (it *Iterator) Next() *Entry {
	defer runtime.KeepAlive(it)
	e, _ := it.next()
	return e
}
