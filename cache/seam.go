// Seam: the steps of readers and writers between which tests act, in builds with the tags
// freehold_seams and freehold_portable. Other builds pin a goroutine to its processor at some of
// these steps, where a test must not block.

package cache

import (
	"github.com/freehold-go/freehold/internal/cuckoo"
	"github.com/freehold-go/freehold/internal/seam"
)

const (
	readMoves    seam.Point = iota // before a search
	readSlot                       // R1 of segment.go
	readPinned                     // R2
	readHeld                       // R3
	writeHidden                    // W1, of an item that is rewritten
	writeAlone                     // W2
	writeShown                     // the slot has its word again, and moves is still odd
	diskSearch                     // the key is not in memory, before a search for it on disk
	diskSlotSeen                   // before a record is read
	diskRead                       // after that, before the lock
)

const readFirst = cuckoo.SearchedFirst
