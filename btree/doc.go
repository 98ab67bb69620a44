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
// Use it where order matters: ranges, the next key, the least and the greatest, or a
// large index that is filled from sorted input. Where it does not, a hash map finds a
// key in less time.
//
// [New] takes keys that Go orders itself: numbers, and strings, which the map copies.
// [NewFunc] takes other keys without Go pointers, and a function that compares them.
// Values are any type without Go pointers. So no value is a string: it may be an ID of
// package intern, or a [freehold.String], which is yours to free before its entry is
// deleted. Nothing per entry is on the Go heap.
//
// # Who may use it at once
//
// Any number of goroutines may read a Map at the same time: Get, At, Len, Min, Max,
// the iterators and Stats change nothing. A call that changes the map must be alone,
// as for Go's map; a sync.RWMutex arranges that. It must also be alone with those
// who still use a pointer of At or a string key of the map.
//
// # Changes during iteration
//
// The loop over an iterator may call any method of the map. The iterator then goes on
// with the next key in order: each entry that is there from begin to end is seen
// once, an entry deleted before it was reached is not, and one put ahead is.
//
// # Files
//
// A Map is not kept in a file. Its nodes refer to each other by address, and a file
// that survives a kill would need a log or copies of each changed node. A sorted
// file is smaller, and is loaded at once by [Map.Load]: write All to a
// [github.com/freehold-go/freehold/buffer.Buffer] of fixed records, and Load it when
// the program starts. An example shows it.
package btree
