// Package cache keeps gigabytes of entries, off-heap, within a bound in bytes.
//
//	sessions := cache.New(freehold.Pages(), &cache.Options{MaxBytes: 8 << 30, TTL: time.Hour})
//	defer sessions.Close()
//
//	err := sessions.Set(id, session)            // copies both
//	buf, ok := sessions.Get(buf[:0], id)        // appends a copy to buf
//	ok = sessions.View(id, func(e cache.Entry) { // reads in place
//		conn.Write(e.Value)
//	})
//
// The collector sees a constant, small number of objects, however large the cache is. All memory of
// entries comes from the allocator given to [New], which must be safe for concurrent use:
// [freehold.Pages], or the cache's own [freehold.Heap], with HugePages for a cache of gigabytes.
//
// # Keys and values
//
// Keys and values are bytes. The cache copies them; no call keeps or changes its arguments. For a
// string s of up to 32 bytes, []byte(s) allocates nothing. For a longer one, unsafe.Slice of
// unsafe.StringData avoids the copy. [Of] is a cache of other types.
//
// # The bound
//
// Entries, index and bookkeeping together never take more than MaxBytes. When a new entry needs
// room, the cache first drops expired entries. Then it evicts rarely read ones by S3-FIFO: an entry
// that was read twice is kept longer. A Set fails in three cases only:
//
//   - The entry is too large: see [ErrTooLarge].
//   - Kept entries or readers hold nearly all of the cache.
//   - The parent refuses memory, and evicting does not help: the shard has no memory yet, or the
//     entry is large and needs a block of its own.
//
// Expired entries leave within a second. For that second, an entry with a TTL in fractions of a
// second may stay while others are evicted. When most entries are deleted or have expired, the cache
// returns their memory to the parent within a minute. A timer does this. It runs only while an entry
// has a TTL or memory can be returned. No goroutine waits.
//
// # A tier on disk
//
// With [Options].Disk, evicted entries go to a file on an SSD, of up to 256 GiB. A read that misses
// in memory reads the file, and brings the entry back. See [Disk].
//
// # Concurrency
//
// Any number of goroutines may call any method at the same time, except Close. Get, View and
// GetMany take no lock for an entry in memory. A writer locks one of many shards. A reader in View
// delays no other call, but a block of its shard, usually 4 KiB to 1 MiB, cannot be reused until it
// returns. Calls for one key are linearizable.
//
// # The collector
//
// A process with a cache and little else has a small Go heap, so the collector runs often. Package
// [github.com/freehold-go/freehold/budget/auto] lets Go's heap grow to 64 MiB first; Options.GoHeap
// of [github.com/freehold-go/freehold/budget], or GOGC, set another size.
//
// The collector frees the Go objects of a cache that is dropped without Close. The memory of the
// entries goes back to the parent only if Options.Collect is set.
package cache
