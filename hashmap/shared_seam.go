// Seam: the steps of readers and writers of a Shared between which tests act, in builds with
// the tag freehold_seams.

package hashmap

import "github.com/freehold-go/freehold/internal/seam"

const (
	readDirectory seam.Point = iota
	readTable
	readVersion
	readEntry
	readTags
	readKey
	readValue
	readSlow // before the lock

	lookedUp // a table, which is not locked yet
	raised
	wroteKey
	wroteValue
	copied    // a table to those that replace it
	published // one entry of the directory
	deepened  // the directory, whose predecessor is not marked yet
)
