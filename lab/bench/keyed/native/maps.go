//go:build peer_boost || peer_absl

package native

// #include "maps.h"
import "C"

import (
	"fmt"
	"unsafe"
)

func init() { fmt.Println("allocator:", C.GoString(C.map_version())) } // lab bench reads it

// A Map is never freed.
type Map struct{ at unsafe.Pointer }

// NewHash returns a map with room for entries.
func NewHash(room int) Map { return Map{C.map_new(0, C.size_t(room))} }

// NewOther returns the map with the name Other.
func NewOther() Map { return Map{C.map_new(1, 0)} }

// Put gives keys the values first, first+1 and so on.
func (m Map) Put(keys []uint64, first uint64) {
	C.map_put(m.at, of(keys), C.size_t(len(keys)), C.uint64_t(first))
}

// Look returns the sum of the values, 1 for a key that is not there.
func (m Map) Look(keys []uint64) uint64 {
	return uint64(C.map_look(m.at, of(keys), C.size_t(len(keys))))
}

// Share gets a key if its choice is 0, puts it if that is 1, and deletes it otherwise.
func (m Map) Share(keys []uint64, choices []byte) {
	C.map_share(m.at, of(keys), (*C.uint8_t)(unsafe.SliceData(choices)), C.size_t(len(keys)))
}

// Get returns the value of a key.
func (m Map) Get(key uint64) (value uint64, ok bool) {
	var v C.uint64_t
	ok = C.map_get(m.at, C.uint64_t(key), &v) != 0
	return uint64(v), ok
}

func (m Map) Delete(keys []uint64) { C.map_delete(m.at, of(keys), C.size_t(len(keys))) }

// Scan returns the sum of key ^ value of all entries.
func (m Map) Scan() uint64 { return uint64(C.map_scan(m.at)) }

func of(keys []uint64) *C.uint64_t { return (*C.uint64_t)(unsafe.SliceData(keys)) }
