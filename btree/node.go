// Nodes: the memory layout of B+ tree nodes.
//
//	leaf    | count | refs | prev | next | keys ...  | values ...    |
//	inner   | count | refs | keys ...        | children, one more    |
//
// Keys are apart from values, so that a search reads only keys. The entries of a leaf and the keys
// of an inner node ascend. Key i of an inner node equals the least key below child i+1.
//
// With Options.Ranks an inner node has sizes behind the children: see rank.go.
//
// A key's slot holds its K, or a [text] if K is a string.

package btree

import (
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/prefetch"
	"github.com/freehold-go/freehold/internal/vm"
)

const (
	nodeBytes = 2 << 10 // the largest node, unless minSlots need more
	minSlots  = 8       // the least capacity of a node
	maxSlots  = 256     // the greatest
	lineBytes = 64      // a cache line; nodes begin on one

	// Each level has at least three times the nodes of the one above, apart from the
	// root and the last node of each level.
	maxHeight = 42
)

// A node is the header of a block. The header of an inner node ends before prev.
type node struct {
	entries    uint32  // of a leaf, or the keys of an inner node: see count
	refs       uint32  // references beyond the first: see clone.go
	prev, next address // of a leaf, unless the map is cloned
}

// An address is the address of a node, or 0. Nodes refer to each other by addresses, since off-heap
// memory holds no pointers.
type address uintptr

const (
	leafHeader  = unsafe.Sizeof(node{})
	innerHeader = unsafe.Offsetof(node{}.prev)
)

// With a header of one word, an inner node has 127 keys of 8 bytes, and not 126.
const _ = -uint(innerHeader - 8)

// A layout gives the offsets and sizes in leaves or in inner nodes.
type layout struct {
	slots  int     // the capacity in keys
	least  int     // a node with fewer keys is joined with a neighbour
	merge  int     // two nodes with at most this number of keys together become one
	extra  int     // more values than keys: 1 for an inner node, whose values are its children
	keys   uintptr // offset of the first key
	values uintptr // offset of the first value
	bytes  int     // of the block
	lines  int     // cache lines of a search, at least 1: the header and two thirds of the keys

	keyBytes, valueBytes uintptr
	sizes                uintptr // offset of the first size, or 0: see rank.go
}

// newLayout returns the layout of nodes with keys and values of these sizes and
// alignments, and extra more values than keys. If ranks is set, each value has a size.
func newLayout(header, keyBytes, keyAlign, valueBytes, valueAlign uintptr, extra int, ranks bool) layout {
	l := layout{slots: maxSlots, extra: extra, keyBytes: keyBytes, valueBytes: valueBytes}
	for {
		l.place(header, keyAlign, valueAlign)
		if ranks {
			l.sizes = vm.RoundUp(uintptr(l.bytes), unsafe.Alignof(0))
			l.bytes = int(l.sizes + uintptr(l.slots+extra)*unsafe.Sizeof(0))
		}
		if l.bytes <= nodeBytes || l.slots == minSlots {
			break
		}
		l.slots--
	}
	l.least = l.slots / 3
	l.merge = l.slots * 3 / 4
	return l
}

// place sets the offsets in a node with l.slots keys, and the node's size. Keys or values of size 0
// are at offset 0: a pointer to the node's end would point to the next block.
func (l *layout) place(header, keyAlign, valueAlign uintptr) {
	l.bytes = int(header)
	if l.keyBytes > 0 {
		l.keys = vm.RoundUp(header, keyAlign)
		l.bytes = int(l.keys + uintptr(l.slots)*l.keyBytes)
	}
	if l.valueBytes > 0 {
		l.values = vm.RoundUp(uintptr(l.bytes), valueAlign)
		l.bytes = int(l.values + uintptr(l.slots+l.extra)*l.valueBytes)
	}
	searched := header + uintptr(l.slots*2/3)*l.keyBytes
	l.lines = int(min(searched, nodeBytes)+lineBytes-1) / lineBytes
}

// pointer returns the node at a, or nil for 0.
func (a address) pointer() *node { return *(**node)(unsafe.Pointer(&a)) }

// nodeOf returns the node in b, a block of at least the size of a node.
func nodeOf(b []byte) *node { return (*node)(unsafe.Pointer(unsafe.SliceData(b))) }

// count returns the number of entries of a leaf, or of keys of an inner node.
func (n *node) count() int { return int(n.entries) }

func (n *node) setCount(count int) { n.entries = uint32(count) }

func (n *node) address() address { return address(uintptr(unsafe.Pointer(n))) }

// at returns a pointer to a byte of the node's block.
func (n *node) at(offset uintptr) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(n), offset) }

// block returns the memory of n.
func (l *layout) block(n *node) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(n)), l.bytes) }

func (l *layout) key(n *node, i int) unsafe.Pointer { return n.at(l.keys + uintptr(i)*l.keyBytes) }

func (l *layout) value(n *node, i int) unsafe.Pointer {
	return n.at(l.values + uintptr(i)*l.valueBytes)
}

// keysOf returns the keys of n. K is not a string.
func keysOf[K any](l *layout, n *node) []K { return unsafe.Slice((*K)(n.at(l.keys)), n.count()) }

// valuesOf returns the values of the leaf n.
func valuesOf[V any](l *layout, n *node) []V { return unsafe.Slice((*V)(n.at(l.values)), n.count()) }

// child returns a pointer to the address of child i in n, an inner node.
func (l *layout) child(n *node, i int) *address {
	return (*address)(n.at(l.values + uintptr(i)*unsafe.Sizeof(address(0))))
}

// prefetch prefetches the cache lines that a search in n may read, so that their misses overlap.
func (l *layout) prefetch(n *node) { prefetch.Lines(uintptr(unsafe.Pointer(n)), l.lines) }

// touch loads a word of each cache line of the leaf n that holds entries, so that their misses
// overlap: a loop over the entries would wait for one line after the other. It also loads a word of
// next, the leaf that follows.
func (l *layout) touch(n, next *node) {
	if next != nil {
		atomic.LoadUint32((*uint32)(next.at(0)))
	}
	keys := min(l.keys+uintptr(n.count())*l.keyBytes, nodeBytes)
	for at := uintptr(lineBytes); at+4 <= keys; at += lineBytes {
		atomic.LoadUint32((*uint32)(n.at(at)))
	}
	values := min(l.values+uintptr(n.count())*l.valueBytes, nodeBytes)
	for at := l.values &^ 3; at+4 <= values; at += lineBytes {
		atomic.LoadUint32((*uint32)(n.at(at)))
	}
}

// copyKey copies key j of from, which has layout f, to key i of to.
func (l *layout) copyKey(to *node, i int, f *layout, from *node, j int) {
	move(l.key(to, i), f.key(from, j), l.keyBytes)
}

// copyKeys copies n keys, from key j of from to key i of to.
func (l *layout) copyKeys(to *node, i int, from *node, j, n int) {
	if n > 0 { // otherwise key i or j may not exist
		move(l.key(to, i), l.key(from, j), uintptr(n)*l.keyBytes)
	}
}

// copyValues copies n values, from value j of from to value i of to, and their sizes.
func (l *layout) copyValues(to *node, i int, from *node, j, n int) {
	if n > 0 {
		move(l.value(to, i), l.value(from, j), uintptr(n)*l.valueBytes)
		if l.sizes != 0 {
			copy(l.sizesOf(to, i, n), l.sizesOf(from, j, n))
		}
	}
}

// shift moves the keys of n from key i on to index j, and the values from value i+skip on by as much.
// So n has j-i more keys.
func (l *layout) shift(n *node, i, j, skip int) {
	l.copyKeys(n, j, n, i, n.count()-i)
	l.copyValues(n, j+skip, n, i+skip, n.count()+l.extra-i-skip)
	n.setCount(n.count() + j - i)
}

// move copies size bytes, which may overlap.
func move(to, from unsafe.Pointer, size uintptr) {
	copy(unsafe.Slice((*byte)(to), size), unsafe.Slice((*byte)(from), size))
}
