// Entry: what is kept with a key.

package cache

import (
	"errors"
	"time"
)

// An Entry is a value and what the cache keeps beside it.
type Entry struct {
	Value []byte

	// Flags are the caller's. The cache keeps them in 4 bytes, in 8 if they need more, and in none
	// if they are 0.
	Flags uint64

	// TTL is how long the entry stays: what is left of it in an Entry that the cache returns, to the
	// second. 0 means until there is no room, and in one that is stored the TTL of the options, which may be
	// that. One that is stored with a negative TTL has expired.
	TTL time.Duration

	// Read says that the entry was read since it was stored, and Idle how long ago it was read or stored
	// last, to the second; as they were before the read that returns them. Touch is a read too. An entry
	// that is stored begins with the Read and Idle that it is given. The cache keeps them if
	// Options.Access is set. A read at the moment when the cache moves the entry may go unnoticed.
	Read bool
	Idle time.Duration

	// Version differs for each state that a key has had, and is not 0. The cache sets it; calls
	// that store an Entry ignore it. It takes no memory. It also changes when the cache moves an
	// entry within its memory, which it does from time to time with those that stay.
	Version uint64
}

// Errors, for [errors.Is].
var (
	// ErrTooLarge says that key and value together are larger than [Cache.MaxEntry], or the key is
	// larger than 65,535 bytes. The error says both sizes. Set and Put delete what the key had before.
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

// A Change is what the function of [Cache.Update] wants.
type Change uint8

const (
	Keep   Change = iota // the entry as it is
	Store                // the Entry as the function has set it
	Remove               // no entry
	Touch                // the entry as it is, with the TTL that the function has set, as [Cache.Touch] does
)
