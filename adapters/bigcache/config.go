// Config: options and callbacks.

package bigcache

import (
	"log"
	"os"
	"time"

	"github.com/freehold-go/freehold/cache"
)

// A Config configures a cache.
type Config struct {
	// Shards is the number of locks for writers, and of lists by which expired entries are found.
	// It is a power of two.
	Shards int

	// LifeWindow is the time after which an entry expires, in whole seconds. CleanWindow is the
	// interval at which expired entries are removed. If it is not positive, each write removes one
	// expired entry of its shard.
	LifeWindow, CleanWindow time.Duration

	MaxEntriesInWindow int // no effect, but not negative
	MaxEntrySize       int // no effect, but not negative

	// StatsEnabled counts the requests for each entry, in 4 bytes an entry, for [Metadata]. A read
	// then locks a part of the cache.
	StatsEnabled bool

	// Verbose logs keys that have the same hash.
	Verbose bool

	// Hasher hashes keys. If it is nil, FNV-1a does.
	Hasher Hasher

	// HardMaxCacheSize is the bound on the cache's memory, in MiB. 0 means none.
	HardMaxCacheSize int

	// The first of these that is not nil is called when an entry is deleted, expires or is evicted,
	// but not when it is overwritten. It gets copies of the key and the value. It runs under locks:
	// calls of the cache from it deadlock.
	OnRemoveWithMetadata func(key string, entry []byte, keyMetadata Metadata)
	OnRemove             func(key string, entry []byte)
	OnRemoveWithReason   func(key string, entry []byte, reason RemoveReason)

	onRemoveFilter int // bit i is set if OnRemoveWithReason is for reason i; 0 means for all

	// Logger is for Verbose. nil means DefaultLogger.
	Logger Logger
}

// A RemoveReason says why an entry was removed.
type RemoveReason uint32

const (
	Expired RemoveReason = iota + 1 // older than the LifeWindow
	NoSpace                         // to make room
	Deleted                         // by Delete
)

// Metadata is the number of reads of an entry, if the Config has StatsEnabled. A Set of the key keeps
// it.
type Metadata struct{ RequestCount uint32 }

// A Hasher hashes keys. Keys with the same hash replace each other.
type Hasher interface{ Sum64(string) uint64 }

// A Logger prints lines.
type Logger interface {
	Printf(format string, v ...interface{})
}

// DefaultLogger returns a logger to the standard output.
func DefaultLogger() *log.Logger { return log.New(os.Stdout, "", log.LstdFlags) }

// DefaultConfig returns a Config with 1,024 shards and a CleanWindow of a second, without a bound.
func DefaultConfig(eviction time.Duration) Config {
	return Config{
		Shards:             1024,
		LifeWindow:         eviction,
		CleanWindow:        time.Second,
		MaxEntriesInWindow: 600000,
		MaxEntrySize:       500,
		Verbose:            true,
		Hasher:             newDefaultHasher(),
		Logger:             DefaultLogger(),
	}
}

// OnRemoveFilterSet returns the Config with an OnRemoveWithReason for these reasons only.
func (c Config) OnRemoveFilterSet(reasons ...RemoveReason) Config {
	c.onRemoveFilter = 0
	for _, r := range reasons {
		c.onRemoveFilter |= 1 << r
	}
	return c
}

func (c *Config) hasCallback() bool {
	return c.OnRemoveWithMetadata != nil || c.OnRemove != nil || c.OnRemoveWithReason != nil
}

// removed calls the callback, if there is one.
func (c *Config) removed(e cache.Entry, reason RemoveReason) {
	if !c.hasCallback() {
		return
	}
	k, v := unwrap(e.Value)
	switch key := string(k); {
	case c.OnRemoveWithMetadata != nil:
		c.OnRemoveWithMetadata(key, copied(v), Metadata{requestsOf(e.Flags)})
	case c.OnRemove != nil:
		c.OnRemove(key, copied(v))
	case c.onRemoveFilter == 0 || c.onRemoveFilter>>reason&1 != 0:
		c.OnRemoveWithReason(key, copied(v), reason)
	}
}

// fnv64a is FNV-1a of 64 bits.
type fnv64a struct{}

func newDefaultHasher() Hasher { return fnv64a{} }

func (fnv64a) Sum64(key string) uint64 {
	hash := uint64(14695981039346656037)
	for i := range len(key) {
		hash = (hash ^ uint64(key[i])) * 1099511628211
	}
	return hash
}
