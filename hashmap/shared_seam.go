// Seam: steps of readers and writers of a Shared at which tests act, in builds with the tag
// freehold_seams.

package hashmap

import "github.com/freehold-go/freehold/internal/seam"

const (
	readDirectory seam.Point = iota
	readTable
	readVersion
	readEntry
	readTags
	readOverflow // by seek
	readKey
	readValue
	readSlow // before the lock

	lookedUp // a table, not locked yet
	raised
	wroteKey
	wroteValue
	copied    // a table to its replacements, not published yet
	published // one entry of the directory
	deepened  // the directory; its predecessor is not marked yet
	leaving   // a table, still locked
)
