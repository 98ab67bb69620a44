// Options: how a cache is made.

package cache

import (
	"time"

	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/internal/arg"
)

// MinBytes is the least that [Options].MaxBytes may be.
const MinBytes = 256 << 10

// Options configures a [Cache]. MaxBytes is required.
type Options struct {
	// MaxBytes is the bound, in bytes, of the cache's memory: entries, index and bookkeeping. New
	// panics if it is less than MinBytes.
	MaxBytes int

	// Name appears in Stats and in reports, and tells caches apart in metrics: see package metrics.
	Name string

	// Format names the encoding of values, for example "session 3". A snapshot carries it, and
	// Restore refuses the snapshot of a cache with another Format. Change it when the encoding
	// changes.
	Format string

	// TTL is the lifetime of an entry that Set stores. It is also the lifetime of an entry with an
	// Entry.TTL of 0 that Put, Add, Replace, CompareAndSet, Update or GetOrLoad stores. If TTL is 0,
	// these entries do not expire. A ttl of 0 in SetTTL and Touch does not mean Options.TTL: the
	// entry does not expire. New panics for a negative TTL.
	TTL time.Duration

	// Sliding makes each read restart the TTL of an entry, unless the entry does not expire. The
	// new TTL is always Options.TTL, which must not be 0. So a read shortens an entry's own, longer
	// TTL.
	Sliding bool

	// Expiry, unless it is nil, gives each entry a TTL, in place of TTL and Sliding, which must
	// then not be set. Expiry is called before an entry without a TTL of its own is stored, and
	// with read set after each read of an entry that expires. e.TTL is the time left of the entry
	// that is read or replaced, or 0 if there is none. The entry gets the TTL that Expiry returns.
	// If that is e.TTL, the entry expires when it would have; if 0, never; if negative, at once.
	//
	// Key and value are the cache's own memory: Expiry must neither change nor keep them. Before an
	// entry is stored, Expiry runs under the lock of a shard, and calls of the cache from it
	// deadlock. It may be called twice for a large entry. During a read it runs without a lock.
	Expiry func(key []byte, e Entry, read bool) time.Duration

	// Jitter shortens each TTL by a random part of it, so that entries that were stored together do
	// not expire together. Jitter is the largest part, from 0 to 1; New panics for any other.
	Jitter float64

	// Negative is how long GetOrLoad remembers that its load returned ErrNotFound (negative
	// caching), unless the Entry that came with the error has a TTL. 0 means not at all. New panics
	// if it is negative.
	Negative time.Duration

	// RefreshAfter is the age from which GetOrLoad and GetOrLoadMany load an entry again, in the
	// background (refresh-ahead). They return the old value meanwhile: see [Cache.GetOrLoad]. The
	// age counts from the call that stored the entry or changed its flags, or from Restore. It is
	// up to a second longer than RefreshAfter, and Jitter shortens it as it does a TTL. An entry
	// that expires before that age is not refreshed. RefreshAfter takes 4 bytes an entry. 0 means
	// never. New panics if it is negative.
	RefreshAfter time.Duration

	// Access keeps the time at which each entry was last read, for Entry.Read and Entry.Idle. That
	// takes 4 bytes an entry. Each read writes to the entry's memory, at most once a second.
	Access bool

	// Favor says what eviction aims at if entries differ in size. Hits, the default, needs more
	// reads to keep a large entry than a small one. ByteHits does not, once an entry was read twice.
	// If all entries have about the same size, Favor changes nothing.
	Favor Favor

	// KeepAll makes all entries Entry.Kept: the cache evicts nothing. Once it is full, calls that
	// store fail until about 7% of the bytes of its entries have expired or been deleted.
	KeepAll bool

	// OnEvict is called once with each entry that the cache drops by itself. It is not called with
	// an entry that a call replaces, deletes or clears. Nor is it called with an entry that goes to
	// Disk, neither then nor when the entry leaves the disk. Key and value are the cache's own
	// memory: OnEvict must neither change nor keep them. It runs under the lock of a shard. So it
	// must be short, and calls of the cache from it deadlock. Calls for entries of different shards
	// may run at the same time.
	//
	// OnEvict runs in the call that needs the room. For entries that have expired, it also runs in
	// a goroutine of the cache, within a second after the expiry, or later if the processors are
	// busy. A panic there ends the process. A panic in a call passes to the caller, and the cache
	// may be used on.
	OnEvict func(key []byte, e Entry, why Reason)

	// Collect makes the garbage collector close a cache that nothing refers to any more: its memory
	// goes back to the parent, as after Close, some time after a collection. Use it if the program
	// does not know when it uses the cache for the last time; else call Close.
	// [freehold.Stats].Collected counts such caches, and package track lists them.
	//
	// OnEvict must not refer to the cache, which would keep it. New panics if the blocks of the parent
	// end together, as an arena's do, and if there is a Disk. A parent that is no [freehold.Heap], nor
	// a wrapper of heaps, must not be closed before the collector has closed the cache.
	Collect bool

	// Disk, unless it is nil, adds a second, larger tier on disk for entries that are evicted from
	// memory. New panics if Collect or KeepAll is set too.
	Disk *Disk

	// Budget makes the cache shrink while the budget's pressure is not calm, by the bytes that the
	// pressure wants, and grow back when it is calm. The cache keeps at least a quarter of its
	// MaxBytes, and the least that Resize allows. Caches with a low Priority shrink first: see
	// [budget.Budget.OnPressure]. Stats.Shrunk counts the entries that are dropped.
	Budget   *budget.Budget
	Priority int
}

// A Favor is an aim of the eviction policy.
type Favor int

const (
	Hits     Favor = iota // a high share of reads that find their entry
	ByteHits              // a high share of the bytes asked for, as for a cache of files
)

// check panics for options that are a mistake.
func (o *Options) check() {
	const call = "cache.New"
	if o == nil {
		arg.Panicf(call, "options are nil, and MaxBytes is required")
	}
	arg.AtLeast(call, "Options.MaxBytes", o.MaxBytes, MinBytes)
	if o.TTL < 0 || o.Negative < 0 || o.RefreshAfter < 0 {
		arg.Panicf(call, "Options.TTL %v, Negative %v and RefreshAfter %v, want 0 or more", o.TTL, o.Negative, o.RefreshAfter)
	}
	if o.Expiry != nil && (o.TTL != 0 || o.Sliding) {
		arg.Panicf(call, "Options.Expiry together with TTL or Sliding")
	}
	if o.Sliding && o.TTL == 0 {
		arg.Panicf(call, "Options.Sliding without a TTL")
	}
	if o.Favor != Hits && o.Favor != ByteHits {
		arg.Panicf(call, "Options.Favor %d, want Hits or ByteHits", o.Favor)
	}
	if o.Disk != nil {
		o.Disk.check(o)
	}
	if !(o.Jitter >= 0 && o.Jitter <= 1) {
		arg.Panicf(call, "Options.Jitter %v, want 0 to 1", o.Jitter)
	}
}
