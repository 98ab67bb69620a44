// Change: the result of a function that decides about an entry.

package freehold

// A Change says how a call changes an entry of a map or a cache. The function that the caller gave
// to the call returns it, after it has seen the entry: see Compute of packages hashmap and btree, and
// Update of package cache, which has two more.
type Change uint8

const (
	Keep   Change = iota // leave the entry as it was, or absent
	Store                // store the value that the function has set
	Remove               // remove the entry, if there is one
)
