// Items: how an entry is stored in a segment.
//
//	| head 12 B | flags 0, 4 or 8 B | key | value | 0 to 3 B |   a multiple of 4 B, at one
//
// An item is written before a slot refers to it, and then only expires changes, by atomic stores. An
// item does not know whether it is live: it is if a slot refers to its place.

package cache

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// An item is the head of a stored entry.
type item struct {
	valueBytes uint32
	keyBytes   uint16
	flagsBytes uint8
	absent     bool          // it says that there is no value: GetOrLoad remembers that
	expires    atomic.Uint32 // the second of the cache's clock at which it has expired, or 0
}

const (
	headBytes   = 12
	unitBytes   = 4
	maxKeyBytes = 1<<16 - 1
)

const _ = -(unsafe.Sizeof(item{}) ^ headBytes)

// flagsBytes returns in how many bytes flags are stored.
func flagsBytes(flags uint64) int {
	switch {
	case flags == 0:
		return 0
	case flags < 1<<32:
		return 4
	}
	return 8
}

// itemBytes returns the size of an item.
func itemBytes(key []byte, e *Entry) int {
	return roundUp(headBytes+flagsBytes(e.Flags)+len(key)+len(e.Value), unitBytes)
}

func roundUp(n, unit int) int { return (n + unit - 1) &^ (unit - 1) }

// write makes the memory at it, of itemBytes, the item of key and e.
func (it *item) write(key []byte, e *Entry, expires uint32, absent bool) {
	it.valueBytes, it.keyBytes = uint32(len(e.Value)), uint16(len(key))
	it.flagsBytes, it.absent = uint8(flagsBytes(e.Flags)), absent
	it.expires.Store(expires)
	switch flags := it.bytes(headBytes, int(it.flagsBytes)); len(flags) {
	case 4:
		binary.NativeEndian.PutUint32(flags, uint32(e.Flags))
	case 8:
		binary.NativeEndian.PutUint64(flags, e.Flags)
	}
	copy(it.key(), key)
	copy(it.value(), e.Value)
}

// copyTo copies the item to memory of its size.
func (it *item) copyTo(to *item) {
	to.expires.Store(it.expires.Load()) // the word that others may write
	copy(to.bytes(0, 8), it.bytes(0, 8))
	copy(to.bytes(headBytes, it.size()-headBytes), it.bytes(headBytes, it.size()-headBytes))
}

// bytes returns n bytes of the item from the given offset on.
func (it *item) bytes(from, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(it), from)), n)
}

func (it *item) key() []byte {
	return it.bytes(headBytes+int(it.flagsBytes), int(it.keyBytes))
}

func (it *item) value() []byte {
	return it.bytes(headBytes+int(it.flagsBytes)+int(it.keyBytes), int(it.valueBytes))
}

func (it *item) flags() uint64 {
	switch flags := it.bytes(headBytes, int(it.flagsBytes)); len(flags) {
	case 4:
		return uint64(binary.NativeEndian.Uint32(flags))
	case 8:
		return binary.NativeEndian.Uint64(flags)
	}
	return 0
}

func (it *item) size() int {
	return roundUp(headBytes+int(it.flagsBytes)+int(it.keyBytes)+int(it.valueBytes), unitBytes)
}

// hasExpired reports whether the item's time has come.
func (it *item) hasExpired(c *clock) bool {
	expires := it.expires.Load()
	return expires != 0 && c.now() >= expires
}

// pointer turns an address of the parent's memory into a pointer. It is the package's only such
// conversion: the memory does not move and the collector ignores it.
func pointer(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }
