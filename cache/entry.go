// Entry: a value, and its flags, TTL and version.

package cache

import (
	"errors"
	"time"

	"github.com/freehold-go/freehold"
)

// An Entry is a value with its flags, TTL, accesses and version. Its Value is []byte.
type Entry = EntryOf[[]byte]

// An EntryOf is an [Entry] whose value is of type V, for [Of].
type EntryOf[V any] struct {
	Value V

	// Flags are the caller's. The cache keeps them in 4 bytes, or in 8 if they are above 32 bits.
	// Flags of 0 take no memory.
	Flags uint64

	// TTL is the time until the entry expires. A TTL of less than a minute that is no whole number
	// of seconds is kept to 1/1024 s. With any other, the entry expires up to a second later. A TTL
	// of 0 means the TTL of the options. An entry with a negative TTL has expired.
	//
	// In an entry that the cache returns, TTL is the time left, or 0 if the entry does not expire.
	// It is rounded down to a second, and is a nanosecond in the last second. So a copy that is
	// stored with this TTL does not outlive the entry. If the TTL is kept to 1/1024 s, the time left
	// is not rounded, and the copy outlives the entry by the time between the two calls.
	TTL time.Duration

	// Read reports whether the entry was read since it was stored. Idle is the time since it was
	// last read or stored, to the second. Neither counts the read that returns them. Touch counts
	// as a read. A stored entry begins with the Read and Idle that the caller set. The cache keeps
	// both only if Options.Access is set. A read may go unnoticed while the cache moves the entry.
	Read bool
	Idle time.Duration

	// Kept says that the entry is not evicted to make room. It leaves when it expires, when a call
	// replaces or deletes it, and when Resize or the budget makes the cache too small for it. If
	// kept entries leave no room, Set of another entry fails with an error that matches
	// [freehold.ErrOutOfMemory]. Options.KeepAll keeps all entries.
	Kept bool

	// Version numbers the states of a key: each has a higher number than the state before, and none
	// has 0. This holds even if the key was deleted or evicted meanwhile, and after Clear. It holds
	// in a later process if that restores a snapshot, or if it begins later by the system's clock.
	// Version may also grow when the cache moves an entry within its memory. Versions of different
	// keys have no order.
	//
	// The cache sets Version; calls that store an Entry ignore it. It takes no memory, since it
	// follows from the entry's place, with one exception: if the place gives too low a version, as
	// it may after a change of both TTL and size, Version takes 8 bytes.
	Version uint64
}

// Errors, for [errors.Is].
var (
	// ErrTooLarge says that key and value together are larger than [Cache.MaxEntry], or that the key
	// is larger than 65,535 bytes. The error has the size and the limit. Set and Put delete the
	// key's entry then.
	ErrTooLarge = errors.New("freehold: entry is too large for the cache")

	// ErrNotFound is for functions that load: there is no such value. [Cache.GetOrLoad] returns it,
	// and remembers it for the TTL of the Entry that came with it, or for Options.Negative.
	ErrNotFound = errors.New("freehold: not found")
)

// A Reason is why a cache dropped an entry.
type Reason uint8

const (
	Room    Reason = iota // to make room for other entries
	Expired               // its TTL has passed
	Shrunk                // the cache was made smaller, by Resize or by its budget
	reasons
)

// String returns "room", "expired" or "shrunk".
func (r Reason) String() string {
	return [...]string{"room", "expired", "shrunk", "none"}[min(r, reasons)]
}

// A Change says what [Cache.Update] does to the entry. Its function returns it.
type Change = freehold.Change

const (
	Keep   = freehold.Keep       // change nothing
	Store  = freehold.Store      // store the Entry as the function has set it
	Remove = freehold.Remove     // delete the entry
	Touch  = freehold.Remove + 1 // give the entry the TTL that the function set, as [Cache.Touch] does
	Mark   = freehold.Remove + 2 // give the entry the Flags that the function set; keep its version
)

// withValue returns e with another value.
func withValue[V, W any](e *EntryOf[V], v W) EntryOf[W] {
	return EntryOf[W]{v, e.Flags, e.TTL, e.Read, e.Idle, e.Kept, e.Version}
}
