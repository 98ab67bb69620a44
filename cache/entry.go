// Entry: a value, and its flags, TTL and version.

package cache

import (
	"errors"
	"time"
)

// An Entry is a value with its flags, TTL, accesses and version.
type Entry struct {
	Value []byte

	// Flags are the caller's. The cache keeps them in 4 bytes, in 8 if they need more, and in none
	// if they are 0.
	Flags uint64

	// TTL is how long the entry stays. An entry that is stored with a TTL stays that long, and up
	// to a second longer. With 0 it has the TTL of the options, and with a negative one it has
	// expired.
	//
	// An entry that the cache returns has the time left, or 0 if it stays until there is no room.
	// The time is rounded down to a second, and is a nanosecond in the last second, so a copy of
	// the entry with its TTL does not stay longer than the entry.
	TTL time.Duration

	// Read says that the entry was read since it was stored, and Idle how long ago it was read or
	// stored last, to the second; as they were before the read that returns them. Touch is a read
	// too. An entry that is stored begins with the Read and Idle that it is given. The cache keeps
	// them if Options.Access is set. A read at the moment when the cache moves the entry may go
	// unnoticed.
	Read bool
	Idle time.Duration

	// Version grows with each state of a key, and is not 0. The next version is higher even if the
	// key was deleted or evicted meanwhile, after Clear, and in the next process. That process must
	// restore a snapshot or begin later by the system's clock. The version may also grow when the
	// cache moves an entry within its memory. Versions of different keys have no order.
	//
	// The cache sets Version; calls that store an Entry ignore it. It usually takes no memory. It
	// takes 8 bytes of an entry whose key had a higher version than the place of the entry gives
	// it, for example after a change of the TTL.
	Version uint64
}

// Errors, for [errors.Is].
var (
	// ErrTooLarge says that key and value together are larger than [Cache.MaxEntry], or the key is
	// larger than 65,535 bytes. The error says both sizes. Set and Put delete the key's entry then.
	ErrTooLarge = errors.New("freehold: entry is too large for the cache")

	// ErrNotFound is for functions that load: there is no such value. [Cache.GetOrLoad] returns it,
	// and remembers it if Options.Negative is set.
	ErrNotFound = errors.New("freehold: not found")
)

// A Reason is why a cache dropped an entry.
type Reason uint8

const (
	Room    Reason = iota // for room for others
	Expired               // its TTL has passed
	Shrunk                // the cache was made smaller, by Resize or by its budget
	reasons
)

// String returns "room", "expired" or "shrunk".
func (r Reason) String() string {
	return [...]string{"room", "expired", "shrunk", "none"}[min(r, reasons)]
}

// A Change is the result of the function of [Cache.Update]: the action that Update takes.
type Change uint8

const (
	Keep   Change = iota // the entry as it is
	Store                // the Entry as the function has set it
	Remove               // no entry
	Touch                // the entry as it is, with the TTL that the function has set, as [Cache.Touch] does
	Mark                 // the entry as it is, with its version too, and the Flags that the function has set
)
