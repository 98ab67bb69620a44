// Iterator: a loop over the entries that the caller drives.
//
//	Next --want--> goroutine with the loop --entries--> Next
//
// [iter.Pull] takes half of the time. But then a goroutine that is locked to its thread could not
// call Next, nor could the cleanup stop an iterator that such a goroutine made.

package freecache

import "runtime"

// An Iterator returns the entries of a Cache. It is for one goroutine at a time. It needs no Close.
type Iterator struct {
	want    chan<- struct{}
	entries <-chan *Entry // closed after the last one
}

// An Entry is a copy of a key and its value, with the second at which it expires, or 0.
type Entry struct {
	Key      []byte
	Value    []byte
	ExpireAt uint32
}

// NewIterator returns an iterator over the entries that have not expired, in no order. If the cache
// moves an entry meanwhile, the iterator may return it twice or not at all.
func (c *Cache) NewIterator() *Iterator {
	want, entries := make(chan struct{}), make(chan *Entry)
	go func() {
		defer close(entries)
		if _, more := <-want; !more {
			return
		}
		for key, e := range c.entries.All() {
			if c.hasExpired(e) {
				continue
			}
			entries <- &Entry{copyTo(nil, key), copyTo(nil, e.Value), uint32(e.Flags)}
			if _, more := <-want; !more {
				return
			}
		}
	}()
	it := &Iterator{want, entries}
	runtime.AddCleanup(it, func(want chan<- struct{}) { close(want) }, want)
	return it
}

// Next returns the next entry, or nil if there is none left.
func (it *Iterator) Next() *Entry {
	defer runtime.KeepAlive(it)
	select {
	case it.want <- struct{}{}:
		return <-it.entries
	case <-it.entries:
		return nil
	}
}
