// Items: how an entry is stored in a segment.
//
//	| head | access | due    | flags   | version | key | value | to a unit | slack |
//	| 12 B | 0, 4 B | 0, 4 B | 0, 4, 8 | 0, 8    |     |       | 0 to 3 B  |       |
//
// A rewrite by a smaller entry leaves slack: see rewrite.go.
//
// Items begin at multiples of 4 B, and their sizes are multiples of 4 B.
//
// An item is written before a slot refers to it. After that, only expires, access and due change,
// by atomic stores, with one exception: rewrite.go rewrites items that have no reader. An item is
// live if a slot refers to its place. Nothing in the item says so.

package cache

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

// An item is the head of a stored entry.
type item struct {
	valueBytes uint32
	keyBytes   uint16
	shape      shape
	expires    atomic.Uint32 // the second or tick at which it expires, or 0 for never: see clock.go
}

// An access is the second of the cache's clock at which an item was last read or stored. The bit
// wasRead is set if the item was read since it was stored.
type access = uint32

const wasRead access = 1 << 31

const (
	headBytes    = 12
	accessBytes  = 4
	dueBytes     = 4
	versionBytes = 8
	unitBytes    = 4
	maxKeyBytes  = 1<<16 - 1

	// maxHeadBytes is the most that an item takes beside its key and value.
	maxHeadBytes = headBytes + accessBytes + dueBytes + versionBytes + 8 + unitBytes
)

const _ = -(unsafe.Sizeof(item{}) ^ headBytes)

// A shape tells which parts an item has beside key and value, and how often it was rewritten in
// place.
//
//	| promoted 1 | rewrites 5 | slack units 5 | refreshed 1 | versioned 1 | accessed 1 | kind 2 |
type shape uint16

const (
	noFlags   shape = 0 // the kinds
	flags4    shape = 1 // with flags of 4 B
	flags8    shape = 2 // with flags of 8 B
	absent    shape = 3 // GetOrLoad remembers that the key has no value; there are no flags
	kindMask  shape = 3
	accessed  shape = 1 << 2 // it has access
	versioned shape = 1 << 3 // it has a version of its own: see version.go
	refreshed shape = 1 << 4 // it has due, the second from which GetOrLoad refreshes it

	partsMask    = 1<<slackShift - 1
	slackShift   = 5
	slackBits    = 5
	longSlack    = 1<<slackBits - 1 // the first 4 B of the slack have its size
	rewriteShift = slackShift + slackBits
	rewriteBits  = 5
	maxRewrites  = 1<<rewriteBits - 1
	promoted     = shape(1) << (rewriteShift + rewriteBits) // it came from disk, unchanged since
)

// flagsBytes has the bytes of flags by kind.
var flagsBytes = [kindMask + 1]uint8{noFlags: 0, flags4: 4, flags8: 8, absent: 0}

// shapeOf returns the shape of a new item with the given flags. It has no version.
func (c *Cache) shapeOf(flags uint64) (sh shape) {
	switch {
	case flags >= 1<<32:
		sh = flags8
	case flags > 0:
		sh = flags4
	}
	if c.options.Access {
		sh |= accessed
	}
	if c.options.RefreshAfter > 0 {
		sh |= refreshed
	}
	return sh
}

// partsBytes has the bytes between an item's head and its key, by the low bits of its shape.
var partsBytes = func() (all [partsMask + 1]uint8) {
	for i := range all {
		sh := shape(i)
		all[i] = uint8(sh.flagsOffset() - headBytes + sh.flagsBytes() + sh.versionBytes())
	}
	return all
}()

func (sh shape) isAbsent() bool    { return sh&kindMask == absent }
func (sh shape) flagsBytes() int   { return int(flagsBytes[sh&kindMask]) }
func (sh shape) accessBytes() int  { return sh.bytesIf(accessed, accessBytes) }
func (sh shape) versionBytes() int { return sh.bytesIf(versioned, versionBytes) }
func (sh shape) slackUnits() int   { return int(sh >> slackShift & longSlack) }
func (sh shape) rewrites() int     { return int(sh >> rewriteShift & maxRewrites) }

// flagsOffset returns where the flags of an item begin.
func (sh shape) flagsOffset() int {
	return headBytes + sh.accessBytes() + sh.bytesIf(refreshed, dueBytes)
}

// bytesIf returns n if the shape has a bit, else 0.
func (sh shape) bytesIf(bit shape, n int) int {
	if sh&bit == 0 {
		return 0
	}
	return n
}

// withSlack and withRewrites add slack and rewrites to a shape that has none.
func (sh shape) withSlack(bytes int) shape {
	return sh | min(shape(bytes/unitBytes), longSlack)<<slackShift
}
func (sh shape) withRewrites(n int) shape { return sh | shape(n)<<rewriteShift }

// keyOffset returns where the key of an item begins.
func (sh shape) keyOffset() int { return headBytes + int(partsBytes[sh&partsMask]) }

// itemBytes returns the size of an item.
func itemBytes(key []byte, e *Entry, sh shape) int {
	return vm.RoundUp(sh.keyOffset()+len(key)+len(e.Value), unitBytes)
}

// write stores an entry in the memory of it. If own is versioned, it leaves room for a version.
func (it *item) write(w *write, own shape, c *clock) {
	it.keyBytes, it.shape = uint16(len(w.key)), w.shape|own
	copy(it.key(), w.key)
	it.writeEntry(w, c)
}

// writeEntry writes all but key, shape and version. The value of e may be the item's own memory.
func (it *item) writeEntry(w *write, c *clock) {
	e := w.e
	it.valueBytes = uint32(len(e.Value))
	it.expires.Store(w.expires)
	if at := it.access(); at != nil {
		at.Store(c.accessOf(e))
	}
	if at := it.due(); at != nil {
		at.Store(w.due)
	}
	switch flags := it.flagsAt(); len(flags) {
	case 4:
		binary.NativeEndian.PutUint32(flags, uint32(e.Flags))
	case 8:
		binary.NativeEndian.PutUint64(flags, e.Flags)
	}
	copy(it.value(), e.Value)
}

// need returns the size of a copy of the item without version and slack.
func (it *item) need() int {
	return vm.RoundUp(it.keyOffset()-it.shape.versionBytes()+int(it.keyBytes)+int(it.valueBytes), unitBytes)
}

// copyTo copies the item to the memory at to, without its version. If own is versioned, it leaves
// room for one.
func (it *item) copyTo(to *item, own shape) {
	to.expires.Store(it.expires.Load()) // readers may write it, access and due
	to.valueBytes, to.keyBytes = it.valueBytes, it.keyBytes
	to.shape = it.shape&(accessed|refreshed|kindMask|promoted) | own
	if at := it.access(); at != nil {
		to.access().Store(at.Load())
	}
	if at := it.due(); at != nil {
		to.due().Store(at.Load())
	}
	copy(to.flagsAt(), it.flagsAt())
	n := int(it.keyBytes) + int(it.valueBytes)
	copy(to.bytes(to.keyOffset(), n), it.bytes(it.keyOffset(), n))
}

// bytes returns n bytes of the item from the given offset on.
func (it *item) bytes(from, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(it), from)), n)
}

// access returns the address of the item's access, or nil if it has none.
func (it *item) access() *atomic.Uint32 {
	if it.shape&accessed == 0 {
		return nil
	}
	return (*atomic.Uint32)(unsafe.Add(unsafe.Pointer(it), headBytes))
}

// due returns the address of the second from which GetOrLoad refreshes the item, or nil if it has
// none.
func (it *item) due() *atomic.Uint32 {
	if it.shape&refreshed == 0 {
		return nil
	}
	return (*atomic.Uint32)(unsafe.Add(unsafe.Pointer(it), headBytes+it.shape.accessBytes()))
}

func (it *item) keyOffset() int { return it.shape.keyOffset() }
func (it *item) key() []byte    { return it.bytes(it.keyOffset(), int(it.keyBytes)) }

func (it *item) flagsAt() []byte {
	return it.bytes(it.shape.flagsOffset(), it.shape.flagsBytes())
}

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

// versionAt returns the memory of the version of a versioned item.
func (it *item) versionAt() []byte {
	return it.bytes(it.keyOffset()-versionBytes, versionBytes)
}

// size returns the bytes of the item in its segment.
func (it *item) size() int { return it.content() + it.slackBytes() }

// content returns the bytes of the item without its slack.
func (it *item) content() int {
	return vm.RoundUp(it.keyOffset()+int(it.keyBytes)+int(it.valueBytes), unitBytes)
}

func (it *item) slackBytes() int {
	if n := it.shape.slackUnits(); n < longSlack {
		return n * unitBytes
	}
	return int(*it.longSlack())
}

// longSlack returns where the size of the slack is, if the shape has no room for it.
func (it *item) longSlack() *uint32 {
	return (*uint32)(unsafe.Add(unsafe.Pointer(it), it.content()))
}

// live returns the bytes of the item that count as live.
func (it *item) live() int {
	slack := it.slackBytes()
	return liveBytes(it.content()+slack, slack)
}

// liveBytes returns the bytes that count as live of an item with the given size and slack. Slack
// beyond 1/slackShare of the size counts as garbage.
func liveBytes(size, slack int) int { return size - max(slack-size/slackShare, 0) }

// hasExpired reports whether the second or tick at which the item expires has begun.
func (it *item) hasExpired(c *clock) bool {
	expires := it.expires.Load()
	if expires&inTicks != 0 {
		return c.until(expires) <= 0
	}
	return expires != 0 && c.now() >= expires
}

// pointer turns an address of the parent's memory into a pointer. It is the package's only such
// conversion: the memory does not move and the collector ignores it.
func pointer(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

func addrOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

func bytesAt(addr uintptr, n int) []byte { return unsafe.Slice((*byte)(pointer(addr)), n) }
