// Package hashmap has hash maps whose memory is off the Go heap.
//
//	index := hashmap.New[string, Entry](heap, nil)
//	defer index.Close()
//
//	if err := index.Put(name, entry); err != nil { // out of memory: nothing has changed
//		return err
//	}
//	entry, ok := index.Get(name)
//
// The collector sees a few objects for each map, however many entries it has.
//
//   - [Map] is for one goroutine that writes, or for many that only read, as Go's map is.
//   - [Shared] is for any goroutine. It returns copies; View reads in place.
//   - [Frozen] is a file that [Freeze] wrote, which any number of processes read and none writes.
//
// Close a map before its parent. If the parent is at its limit, calls return an error that matches
// [freehold.ErrOutOfMemory]; the map can still be read, and entries can be deleted.
//
// Methods copy a string key that they store, and never keep the caller's. So a key in a []byte may
// be passed as unsafe.String, as [GetBytes], [UpdateBytes], [GetSharedBytes] and others do.
//
// # Types
//
// Keys are any comparable type without Go pointers, or string. Values are any type without Go
// pointers, or string or []byte. A map copies strings and bytes to blocks of the parent; in a Map a
// string key and its value share one block. A [Map] returns strings and bytes that are its own
// memory: clone them if they must outlive the next write.
//
// A struct with a string cannot be a K or V, since a string has a Go pointer. Store an ID of
// package intern instead, or, in a V, a [freehold.String] that you free. A K with a freehold.String
// would be compared by its address.
//
// # Memory
//
// Both maps use extendible hashing: a directory, indexed by the top bits of the hash, refers to
// tables with open addressing, and a full table splits in two. A group of entries in a Shared is a
// seqlock: readers check its version.
//
// All memory is from the parent, the allocator that New is given. Tables have up to 16 KiB. In a
// Map they are two thirds full on average: 24 to 28 bytes for each entry of two words, and up to 35
// from 8 MiB of tables on. A Shared takes 2 bytes more for each entry, and keeps the tables that it
// has replaced. A map in an arena ends with the arena. Until then the blocks that it frees are
// lost: replaced directories and strings.
//
// If the parent refuses memory, the Put of a new key fails if its table is full; Puts into other
// tables succeed. Deleting entries helps if one of them was in that table, or if it frees enough
// strings and bytes for the parent, which may take thousands. A cache should limit Len instead, so
// that the map stays below the parent's limit.
//
// Most of the time of a search in a large map is cache and TLB misses. From 8 MiB of tables on, new
// tables are in huge pages, if the parent has the memory of a freehold heap and Linux has huge
// pages. A goroutine populates up to 3 MiB of them ahead of need, so that no Put waits for the
// kernel. Only Close returns them. HugePages of [freehold.HeapOptions] puts strings, bytes and
// large values in huge pages too; the first Put in each 2 MiB then takes milliseconds.
//
// # Batches
//
// [Map.GetMany] searches for sixteen keys at a time. That is faster than Get for each if the map is
// larger than the processor's caches.
package hashmap
