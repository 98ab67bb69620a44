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
// The collector sees a constant few objects, whatever a map holds.
//
//   - [Map] is for one goroutine, or for many that only read, as Go's map is.
//   - [Shared] is for any goroutine, and what it returns is copied. View reads in place.
//
// Close a map before its parent. At a limit of the parent calls return an error that
// matches [freehold.ErrOutOfMemory], and the map can be read and deleted from.
//
// Methods that take a key do not keep it: they copy a string that they store. So a key in
// a []byte may be given as unsafe.String: [GetBytes], [UpdateBytes], [GetSharedBytes] and others do that.
//
// # Types
//
// Keys are any comparable type without Go pointers, or string. Values are any type
// without Go pointers, or string or []byte. Of strings and bytes a map has copies, each
// in a block of the parent: a string key shares it with its value. What a [Map] returns of
// them is its own memory. Clone what must outlive the next write.
//
// A struct with a string is no K or V, since the string is a Go pointer. Store an ID of
// package intern instead, or in a V a [freehold.String] that you free. In a K that would be
// compared by its address.
//
// # Memory
//
// Both are extendible hash tables: a directory by the top bits of the hash, over tables with
// open addressing that split in two. Readers of a Shared check versions, as of a seqlock.
//
// All memory is from the allocator that New is given, the parent. Tables have up to 16
// KiB and a load factor of 0.4 to 0.8: 23 to 42 bytes for each entry of two words. A
// map in an arena ends with the arena; what it frees as it grows is lost until then, about
// half of its directory, and replaced strings.
//
// When the parent refuses memory, the Put of a key whose table is full fails, while those
// into other tables succeed. Deleting entries helps that Put when one of them was in its
// table, or, with strings and bytes, when the parent has enough memory again: that may
// take thousands. A cache does better to limit Len, below what the parent's limit allows.
//
// Most of a search in a large map is waiting for memory, and some of that for the addresses of
// its pages. From 8 MiB of tables on, new ones are in huge pages where the parent has the memory
// of a freehold heap and Linux has huge pages: they may be at hand up to 3 MiB before they are
// used. A goroutine has the system prepare them, so no Put waits for that. Only Close returns
// them. The blocks of strings, bytes and large values are in huge pages with HugePages of
// [freehold.HeapOptions], where the first Put in each two MiB takes milliseconds.
//
// # Batches
//
// [Map.GetMany] searches for sixteen keys at a time, which costs less than Get for each
// as soon as the map is larger than the processor's caches.
package hashmap
