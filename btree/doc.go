// Package btree keeps keys in order, off-heap.
//
// A [Map] is a B+ tree over any [freehold.Allocator]:
//
//	prices := btree.New[uint64, float64](heap, nil)
//	defer prices.Close()
//
//	err := prices.Put(1700000000, 42.5)
//	for t, price := range prices.Range(from, to) {
//
// Use it where order matters: ranges, the next key, the least and the greatest key. It also suits a
// large index that is filled from sorted input. Where order does not matter, a hash map is faster.
//
// [New] takes keys that Go orders itself: numbers, and strings, which the map copies.
// [NewFunc] takes other keys without Go pointers, and a function that compares them.
// Values are any type without Go pointers, so not strings: use an ID of package intern, or a
// [freehold.String], which you free before you delete its entry. Nothing per entry is on the Go
// heap.
//
// # Concurrency
//
// Any number of goroutines may read a Map at the same time: Get, At, Len, Min, Max, the iterators
// and Stats change nothing. A call that changes the map must run alone, as for Go's map: use a
// sync.RWMutex. During such a call no goroutine may use a pointer of At or a string key of the map
// either. A [Map.Clone] gives readers a snapshot while another goroutine changes the map.
//
// # Changes during iteration
//
// The loop over an iterator may call any method of the map. The iterator then goes on with the next
// key in order. It yields each entry that exists throughout once, entries that are put ahead of it
// too, and no entry that is deleted before it arrives.
//
// # Files
//
// A Map cannot be a file: its nodes refer to each other by address, and to survive a kill it would
// need a log or copies of each changed node. Write All to a
// [github.com/freehold-go/freehold/buffer.Buffer] of fixed records instead, and Load it when the
// program starts, as an example shows. The sorted file is smaller, and [Map.Load] is fast.
package btree
