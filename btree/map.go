// Map: an ordered map, a B+ tree.
//
// This file has its fields and the calls for one key. search.go finds keys, split.go inserts,
// delete.go deletes, compute.go asks a function, load.go appends, iterate.go iterates, rank.go
// counts, and clone.go shares nodes.

package btree

import (
	"cmp"
	"reflect"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/container"
)

// Options sets up a [Map]; nil means all defaults.
type Options struct {
	// Name appears in Stats and, if the map is dropped without Close, in the report of
	// package track. It may be empty, and several may have the same name. To account for the
	// memory in profiles too, use a [freehold.Tagged] as the parent.
	Name string

	// Ranks makes the map count the entries below each node, for [Map.GetAt] and [Map.Rank]. The
	// counts take about 1% of the map's memory. Insertions and deletions search once more for the
	// path of the key.
	Ranks bool
}

// maxBytes is the greatest size of a K or V.
const maxBytes = 16 << 20

// Map is an ordered map off-heap. [New] and [NewFunc] make one; calls of the zero Map panic,
// except Len, Stats and Close. It must not be copied. The package comment says which calls may
// run at the same time.
//
// It is a B+ tree. A node is a block of about 2 KiB, or of eight entries if these are larger.
// Nodes are at least a third full, except the last one of each level. Put of ascending keys and
// [Map.Load] fill all but one entry of a node. Put of keys in random order fills two thirds on
// average. So an entry of two uint64 takes 16 to 24 bytes. The Map itself takes less than 300 bytes
// on the Go heap.
//
// A K or V may have any size up to 16 MiB, 0 too. An insertion moves the values beside it: keep
// large values elsewhere, with a [freehold.Ptr] as V.
type Map[K, V any] struct {
	base container.Base

	root    *node // nil if the map is empty
	height  int   // levels of nodes; 0 if the map is empty
	length  int
	version uint64 // counts inserts and deletes, for iterators

	leaf, inner layout
	keyAt       uintptr // offset of a K in its slot
	texts       bool    // K is a string, and its slot is a text
	ranks       bool    // Options.Ranks
	cloned      bool    // Clone was called since the map was empty, so nodes may be shared
	absent      *V      // the argument of Compute's function for an absent key, or nil

	search  search[K, V]
	compare func(a, b K) int

	counts counts
	spare  [2]spare // leaves, and inner nodes
}

var mapKind = container.Kind{Type: "btree.Map", Maker: "btree.New", Is: "the map is"}

// New returns an empty map whose keys are ordered as by [cmp.Compare]: all NaNs are equal and less
// than all other keys, and -0 equals 0. Its memory comes from parent, which must outlive it. New
// takes none; the first entry does.
//
// K may be a string. The map then copies each key to a block of its own. The strings that
// iterators, Min and Max return are these copies: each is valid until its entry is deleted. Clone
// a string to keep it.
//
// New panics if parent is nil, and if V holds a Go pointer, as [freehold.New] does.
func New[K cmp.Ordered, V any](parent freehold.Allocator, o *Options) *Map[K, V] {
	const call = "btree.New"
	m := &Map[K, V]{compare: cmp.Compare[K], search: orderedSearch[K, V]()}
	var k K
	size, align := unsafe.Sizeof(k), unsafe.Alignof(k)
	if reflect.TypeFor[K]().Kind() == reflect.String {
		m.texts, m.search = true, textSearch[K, V]()
		size, align, m.keyAt = unsafe.Sizeof(text{}), unsafe.Alignof(text{}), unsafe.Offsetof(text{}.string)
	}
	m.init(call, parent, size, align, o)
	return m
}

// NewFunc returns an empty map whose keys are ordered by compare, as for [slices.SortFunc]: it
// returns a negative number if a < b, a positive one if a > b, and 0 if they are equal. It must be
// a strict weak ordering. If it is not, or panics, no memory is lost or corrupted, but entries may
// not be found. All else is as for [New], which is faster for the keys that it accepts.
//
// NewFunc panics as New does, if K holds a Go pointer, and if compare is nil.
func NewFunc[K, V any](parent freehold.Allocator, compare func(a, b K) int, o *Options) *Map[K, V] {
	const call = "btree.NewFunc"
	if compare == nil {
		arg.Panicf(call, "compare is nil")
	}
	arg.PointerFree(call, "K=", freehold.PointerFree[K]())
	m := &Map[K, V]{compare: compare, search: funcSearch[K, V]()}
	var k K
	m.init(call, parent, unsafe.Sizeof(k), unsafe.Alignof(k), o)
	return m
}

// init is the common part of New and NewFunc. keyBytes and keyAlign are the size and alignment of a
// key's slot.
func (m *Map[K, V]) init(call string, parent freehold.Allocator, keyBytes, keyAlign uintptr, o *Options) {
	var v V
	arg.PointerFree(call, "V=", freehold.PointerFree[V]())
	if size := max(keyBytes, unsafe.Sizeof(v)); size > maxBytes {
		arg.Panicf(call, "a K or V of %d bytes, want %d or less", size, maxBytes)
	}
	if o == nil {
		o = &Options{}
	}
	m.leaf = newLayout(leafHeader, keyBytes, keyAlign, unsafe.Sizeof(v), unsafe.Alignof(v), 0, false)
	m.ranks = o.Ranks
	m.inner = newLayout(innerHeader, keyBytes, keyAlign, unsafe.Sizeof(address(0)), unsafe.Alignof(address(0)), 1, o.Ranks)
	container.Make(m, &m.base, &mapKind, parent, o.Name)
}

// Get returns the value of k, and whether k is in the map.
func (m *Map[K, V]) Get(k K) (v V, ok bool) {
	m.mustBeOpen("Get")
	if m.root == nil {
		return v, false
	}
	n, i, ok := m.search.find(m, k)
	if ok {
		v = *m.value(n, i)
	}
	return v, ok
}

// At returns the value of k to read or to change in place, or nil if k is not in the map. The
// pointer is valid until any entry is inserted or deleted. See also [Map.Clone].
func (m *Map[K, V]) At(k K) *V {
	m.mustBeOpen("At")
	if m.root == nil {
		return nil
	}
	n, i, ok := m.search.find(m, k)
	if !ok {
		return nil
	}
	if m.cloned {
		m.mustBeWritable("At")
		var err error
		if n, i, ok, err = m.ownPlace(k); !ok {
			return nil
		}
		m.mustOwn("At", err)
	}
	return m.value(n, i)
}

// Put sets the value of k. It also replaces a key that equals k: after Put of 0, a key -0 is 0, as
// in Go's map. The error matches [freehold.ErrOutOfMemory]; the map is then unchanged. Put of a key
// that is in the map does not fail, unless the map has clones.
func (m *Map[K, V]) Put(k K, v V) error {
	n, i, found := m.find("Put", k) // and not findOwn, which takes longer
	if found && m.cloned {
		var err error
		if n, i, found, err = m.ownPlace(k); err != nil {
			return err
		}
	}
	if !found {
		var err error
		if n, i, err = m.insert(n, i, k); err != nil {
			return err
		}
	} else if !m.texts {
		*m.keySlot(&m.leaf, n, i) = k
	}
	*m.value(n, i) = v
	return nil
}

// PutIfAbsent sets the value of k if k is not in the map. It returns the value of k after that, and
// whether k was in the map before. Errors are as for [Map.Put].
func (m *Map[K, V]) PutIfAbsent(k K, v V) (value V, found bool, err error) {
	n, i, found := m.find("PutIfAbsent", k)
	if found {
		return *m.value(n, i), true, nil
	}
	if n, i, err = m.insert(n, i, k); err != nil {
		return value, false, err
	}
	*m.value(n, i) = v
	return v, false, nil
}

// Update calls update with the value of k, to read and to change in place, and whether k was in
// the map. If it was not, Update inserts it with a zero value first. If update panics, the map is
// as before. update may read the map; a call in it that changes the map panics. Errors are as for
// [Map.Put]; update is then not called.
func (m *Map[K, V]) Update(k K, update func(v *V, found bool)) error {
	n, i, found, err := m.findOwn("Update", k)
	if err != nil {
		return err
	}
	var old V
	if found {
		old = *m.value(n, i)
	} else {
		if n, i, err = m.insert(n, i, k); err != nil {
			return err
		}
		*m.value(n, i) = old
	}
	m.base.Lend()
	done := false
	defer func() {
		m.base.Back()
		if done {
			return
		}
		if *m.value(n, i) = old; !found {
			_ = m.deleteAt(n, i) // its nodes are the map's own
		}
	}()
	update(m.value(n, i), found)
	done = true
	return nil
}

// Len returns the number of entries.
func (m *Map[K, V]) Len() int { return m.length }

// Min returns the entry with the least key, and whether there is one.
func (m *Map[K, V]) Min() (k K, v V, ok bool) {
	m.mustBeOpen("Min")
	if n := m.first(); n != nil {
		return m.key(n, 0), *m.value(n, 0), true
	}
	return k, v, false
}

// Max returns the entry with the greatest key, and whether there is one.
func (m *Map[K, V]) Max() (k K, v V, ok bool) {
	m.mustBeOpen("Max")
	if n := m.last(); n != nil {
		return m.key(n, n.count()-1), *m.value(n, n.count()-1), true
	}
	return k, v, false
}

// Clear deletes all entries. It keeps the nodes for later entries, and frees string keys. It
// keeps no nodes if the map has clones.
func (m *Map[K, V]) Clear() {
	m.mustBeWritable("Clear")
	m.clear()
}

// Close frees all memory. Later calls panic, except Close, Len and Stats. If a map is dropped
// without Close, its memory is lost until the parent is closed; FREEHOLD_DEBUG=leak reports that.
func (m *Map[K, V]) Close() {
	if m.base.MayClose(&mapKind, m.Stats().Reserved > 0) {
		m.clear()
		m.freeSpare()
		container.Closed(m, &m.base)
	}
}

func (m *Map[K, V]) clear() {
	switch {
	case m.cloned:
		m.drop(m.root, m.height-1)
		m.counts, m.root, m.cloned = counts{}, nil, false
	case m.texts:
		for n := m.first(); n != nil; n = n.next.pointer() {
			m.disown(n, 0, n.count())
		}
	}
	if m.root != nil {
		m.spareBelow(m.root, m.height-1)
	}
	m.root, m.height, m.length = nil, 0, 0
	m.version++
}

// find is search.find for a call that changes the map. It returns nil and 0 if the map is empty.
func (m *Map[K, V]) find(call string, k K) (*node, int, bool) {
	m.mustBeWritable(call)
	if m.root == nil {
		return nil, 0, false
	}
	return m.search.find(m, k)
}

func (m *Map[K, V]) mustBeOpen(call string)     { m.base.MustBeOpen(&mapKind, call) }
func (m *Map[K, V]) mustBeWritable(call string) { m.base.MustBeWritable(&mapKind, call) }
