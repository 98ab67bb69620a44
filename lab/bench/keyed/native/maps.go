//go:build peer_boost || peer_absl

package native

// #include "maps.h"
import "C"

import "unsafe"

// A Map is never freed.
type Map struct{ at unsafe.Pointer }

func New() Map { return Map{C.map_new()} }

// Put gives keys the values first, first+1 and so on.
func (m Map) Put(keys []uint64, first uint64) {
	C.map_put(m.at, of(keys), C.size_t(len(keys)), C.uint64_t(first))
}

// Look returns the sum of the values, 1 for a key that is not there.
func (m Map) Look(keys []uint64) uint64 {
	return uint64(C.map_look(m.at, of(keys), C.size_t(len(keys))))
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
