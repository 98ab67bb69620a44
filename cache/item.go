// Items: how an entry is stored in a segment.
//
//	| head 12 B | access 0 or 4 B | flags 0, 4 or 8 B | key | value | 0 to 3 B |   a multiple of 4 B, at one
//
// An item is written before a slot refers to it, and then only expires and access change, by atomic
// stores. An item does not know whether it is live: it is if a slot refers to its place.

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
	marks      mark
	expires    atomic.Uint32 // the second of the cache's clock at which it has expired, or 0
}

// A mark is what is special about an item.
type mark uint8

const (
	absent   mark = 1 << iota // it says that there is no value: GetOrLoad remembers that
	accessed                  // it has access
)

// An access is the second of the cache's clock at which an item was last read or stored, with wasRead if
// it was read since it was stored.
type access = uint32

const wasRead access = 1 << 31

const (
	headBytes   = 12
	accessBytes = 4
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
func itemBytes(key []byte, e *Entry, marks mark) int {
	return roundUp(headBytes+marks.accessBytes()+flagsBytes(e.Flags)+len(key)+len(e.Value), unitBytes)
}

// marks returns those of an item of the cache.
func (c *Cache) marks(isAbsent bool) (m mark) {
	if isAbsent {
		m |= absent
	}
	if c.options.Access {
		m |= accessed
	}
	return m
}

func (m mark) accessBytes() int { return int(m/accessed) * accessBytes }

func roundUp(n, unit int) int { return (n + unit - 1) &^ (unit - 1) }

// write makes the memory at it, of itemBytes, the item of key and e.
func (it *item) write(key []byte, e *Entry, expires uint32, marks mark, c *clock) {
	it.valueBytes, it.keyBytes = uint32(len(e.Value)), uint16(len(key))
	it.flagsBytes, it.marks = uint8(flagsBytes(e.Flags)), marks
	it.expires.Store(expires)
	if at := it.access(); at != nil {
		at.Store(c.accessOf(e))
	}
	switch flags := it.flagsAt(); len(flags) {
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
	to.expires.Store(it.expires.Load()) // readers may write it, and access
	copy(to.bytes(0, 8), it.bytes(0, 8))
	if at := it.access(); at != nil {
		to.access().Store(at.Load())
	}
	from := it.flagsOffset()
	copy(to.bytes(from, it.size()-from), it.bytes(from, it.size()-from))
}

// bytes returns n bytes of the item from the given offset on.
func (it *item) bytes(from, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(it), from)), n)
}

// access returns where the item has its access, or nil.
func (it *item) access() *atomic.Uint32 {
	if it.marks&accessed == 0 {
		return nil
	}
	return (*atomic.Uint32)(unsafe.Add(unsafe.Pointer(it), headBytes))
}

// fetch makes the processor load the end of the item, without waiting for it.
func (it *item) fetch() {
	(*atomic.Uint32)(unsafe.Add(unsafe.Pointer(it), it.size()-unitBytes)).Load()
}

func (it *item) flagsOffset() int { return headBytes + it.marks.accessBytes() }
func (it *item) keyOffset() int   { return it.flagsOffset() + int(it.flagsBytes) }
func (it *item) flagsAt() []byte  { return it.bytes(it.flagsOffset(), int(it.flagsBytes)) }
func (it *item) key() []byte      { return it.bytes(it.keyOffset(), int(it.keyBytes)) }

func (it *item) value() []byte {
	return it.bytes(it.keyOffset()+int(it.keyBytes), int(it.valueBytes))
}

func (it *item) flags() uint64 {
	switch flags := it.flagsAt(); len(flags) {
	case 4:
		return uint64(binary.NativeEndian.Uint32(flags))
	case 8:
		return binary.NativeEndian.Uint64(flags)
	}
	return 0
}

func (it *item) size() int {
	return roundUp(it.keyOffset()+int(it.keyBytes)+int(it.valueBytes), unitBytes)
}

// hasExpired reports whether the item's time has come.
func (it *item) hasExpired(c *clock) bool {
	expires := it.expires.Load()
	return expires != 0 && c.now() >= expires
}

// pointer turns an address of the parent's memory into a pointer. It is the package's only such
// conversion: the memory does not move and the collector ignores it.
func pointer(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }
