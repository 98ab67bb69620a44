// Map: its methods, and the fast paths of a search.
//
// group.go has the layout of a group, table.go how tables place and remove entries, directory.go
// the directory of tables, grow.go how they grow, text.go and owned.go strings and bytes.

package hashmap

import (
	"math/bits"
	"reflect"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/container"
)

// Options sets up a [Map] or a [Shared]; nil means all defaults.
type Options struct {
	// Name appears in Stats and, if the map is dropped without Close, in the report of
	// package track. It may be empty, and several maps may have the same name. To account for
	// the memory in profiles too, use a [freehold.Tagged] as the parent.
	Name string
}

// Map is a hash map in memory of an allocator, its parent. On the Go heap it has only a few
// objects, however many entries it has. It is not safe for concurrent use: like Go's map, it may be
// read by many goroutines at a time, or used by one that writes. Unlike Go's map, it does not
// detect two writers; builds with -race do. [New] makes one. Calls of the zero Map panic, except
// Len, Stats and Close.
//
// K and V are types without Go pointers, or string or, for V, []byte. The map copies strings and
// bytes. Those that it returns are its own memory: they are valid until the next call that changes
// the map, and must not be written to. If K is not string, a V of 128 bytes or more is in a block
// of its own.
//
// Keys are compared by ==. As in Go's map, a NaN is never found: each Put adds an entry, which All
// yields and only Clear removes.
//
// The pause of a Put is bounded: it moves the entries of at most one table of 16 KiB, or of eight
// groups if these are larger, and may copy the directory, which has 8 bytes for each table. It
// allocates up to four blocks. Delete frees the entry's slot at once, so a map with a steady
// stream of deletions and insertions does not slow down. Its tables may take about twice the memory
// that they took when it was filled, since a table grows whenever chance gives it more entries than
// ever before, and never shrinks. Only Close, and deleting strings and bytes, return memory to the
// parent. To shrink a map, copy it to a new one and close the old one.
//
// Each map hashes with its own random seed, so that an attacker cannot choose keys that collide.
// With colliding hashes the map still works, in time proportional to its length.
type Map[K comparable, V any] struct {
	core
}

var mapKind = container.Kind{Type: "hashmap.Map", Maker: "hashmap.New", Is: "the map is"}

// New returns an empty map over parent, which must outlive it. It takes no memory before the first
// Put. Close returns all memory to the parent. A map dropped without Close leaks the memory until
// the parent is closed; FREEHOLD_DEBUG=leak reports that. New panics if parent is nil, if K or V is
// larger than 16 MiB, or if one of them has a Go pointer; it then names the field.
func New[K comparable, V any](parent freehold.Allocator, o *Options) *Map[K, V] {
	vt := reflect.TypeFor[V]()
	m := &Map[K, V]{}
	if o == nil {
		o = &Options{}
	}
	c := &m.core
	c.hash, c.valueKind = kindsOf[K, V]("hashmap.New")
	if c.hash.kind != stringKeys && c.valueKind == noText && vt.Size() >= largeBytes {
		c.valueKind = isLarge
	}
	c.owned = c.hash.kind == stringKeys || c.valueKind != noText
	switch {
	case c.hash.kind == stringKeys && c.valueKind == noText:
		c.layout = layoutOf[ref, struct{}]()
		c.head, c.align, c.keyLimit = vt.Size(), vt.Align(), longBytes
	case c.hash.kind == stringKeys:
		c.layout = layoutOf[ref, struct{}]()
		c.pairs, c.keyLimit = true, pairKeyLimit
	case c.valueKind != noText:
		c.layout = layoutOf[K, ref]()
	default:
		c.layout = layoutOf[K, V]()
	}
	if c.hash.kind == stringKeys {
		c.hashAt = func(key unsafe.Pointer) uint64 {
			s := c.keyOf(*(*ref)(key))
			return c.hash.bytes(unsafe.Slice(unsafe.StringData(s), len(s)))
		}
	} else {
		c.hashAt = func(key unsafe.Pointer) uint64 { return hashOf(&c.hash, (*K)(key)) }
	}
	c.short = c.hash.kind == plainKeys && isShort[K]() && !c.owned
	c.texts = c.pairs || c.hash.kind == stringKeys && c.head > 0
	c.reset()
	c.huge.init(c.stride * c.maxGroups)
	container.Make(m, &c.base, &mapKind, parent, o.Name)
	return m
}

// find returns the group and the slot of k, whose hash is h, or nil.
//
// Precondition: groups have the layout of K and V, which is a ref if values are text or large.
func find[K comparable, V any](m *core, k *K, h uint64) (g unsafe.Pointer, slot uintptr) {
	g, tag := m.homeOf(h, strideOf[K, V]()), tagOf(h)
	w := *tagsAt(g) | uint64(m.early(g, strideOf[K, V]()))
	for passed := uintptr(0); ; {
		for match := matchTag(w, tag); match != 0; match &= match - 1 {
			if slot := slotOf(match); *keyIn[K](g, slot) == *k {
				return g, slot
			}
		}
		if w&passBit(tag) == 0 {
			return nil, 0
		}
		if passed++; passed == m.tableOf(h).groups() {
			return nil, 0
		}
		g = m.tableOf(h).after(h, passed, strideOf[K, V]())
		w = *tagsAt(g)
	}
}

// keyIn returns the address of a slot's key.
//
// Precondition: g is a group of a map with keys of type K, which is not string.
func keyIn[K comparable](g unsafe.Pointer, slot uintptr) *K {
	var k K
	return (*K)(unsafe.Add(g, tagBytes*some[K]()+slot*unsafe.Sizeof(k)))
}

// valueIn returns the address of a slot's value.
//
// Precondition: g is a group of a map with keys of type K and values of type V, without copies.
func valueIn[K comparable, V any](g unsafe.Pointer, slot uintptr) *V {
	var v V
	return (*V)(unsafe.Add(g, valuesOf[K, V]()*some[V]()+slot*unsafe.Sizeof(v)))
}

// Get returns the value of k, and whether the map has k. A string or []byte is the map's memory,
// valid until the next call that changes the map.
func (m *Map[K, V]) Get(k K) (v V, ok bool) {
	if !isShort[K]() || !m.short {
		if !m.texts {
			return m.getSlow(k)
		}
		r, _, ok := m.lookUp(*(*string)(unsafe.Pointer(&k)))
		switch {
		case !ok:
			return v, false
		case m.pairs:
			return viewOf[V](m.valueKind, r.pairValue()), true
		}
		return *(*V)(r.block()), true
	}
	// Nearly every search ends in the first group. It is searched without a call: the fewer
	// instructions a search has, the more searches the processor overlaps.
	h := m.hash.words(wordsOf(&k))
	g, tag := m.homeOf(h, strideOf[K, V]()), tagOf(h)
	w := *tagsAt(g)
	if match := matchTag(w, tag); match != 0 {
		v := valueIn[K, V](g, m.early(g, strideOf[K, V]())+slotOf(match))
		if *keyIn[K](g, slotOf(match)) == k {
			return *v, true
		}
	} else if w&passBit(tag) == 0 {
		return v, false
	}
	return m.getFar(k, h)
}

// early loads the second line of the group at g, if there is one, and returns 0. So the processor
// loads both lines of the group together. Without it, it would load the value's line only after it
// has searched the tags. Callers add the result to an address, so that the load is not dropped.
func (c *core) early(g unsafe.Pointer, stride uintptr) uintptr {
	if stride < 2*lineBytes {
		return 0
	}
	return uintptr(*tagsAt(unsafe.Add(g, lineBytes)) & c.zero)
}

// getSlow is Get for all maps.
func (m *Map[K, V]) getSlow(k K) (v V, ok bool) {
	m.mustBeOpen("Get")
	if m.owned {
		return m.getOwned(&k, hashOf(&m.hash, &k))
	}
	return m.getFar(k, hashOf(&m.hash, &k))
}

// getFar is Get for a map without copies.
func (m *Map[K, V]) getFar(k K, h uint64) (v V, ok bool) {
	if g, slot := find[K, V](&m.core, &k, h); g != nil {
		return *valueIn[K, V](g, slot), true
	}
	return v, false
}

// At returns the address of the value of k, or nil if the map does not have k. It is valid until
// the next call that changes the map. At panics if V is string or []byte.
func (m *Map[K, V]) At(k K) *V {
	m.mustBeOpen("At")
	if m.owned {
		return m.atOwned(&k)
	}
	if g, slot := find[K, V](&m.core, &k, hashOf(&m.hash, &k)); g != nil {
		return valueIn[K, V](g, slot)
	}
	return nil
}

// Put sets the value of k. An error is the parent's and matches [freehold.ErrOutOfMemory]; the map
// is then unchanged. Replacing a value needs no memory, unless V is string or []byte.
func (m *Map[K, V]) Put(k K, v V) error {
	m.mustBeWritable("Put")
	if m.owned {
		return m.putOwned(&k, &v)
	}
	return m.put(k, v, hashOf(&m.hash, &k))
}

// put is Put for a map without copies; h is the hash of k.
func (m *Map[K, V]) put(k K, v V, h uint64) error {
	// Nearly every search ends in the home.
	g, tag := m.homeOf(h, strideOf[K, V]()), tagOf(h)
	w := *tagsAt(g)
	if match := matchTag(w, tag); match != 0 {
		if slot := slotOf(match); *keyIn[K](g, slot) == k && m.hash.kind == plainKeys {
			*valueIn[K, V](g, slot) = v
			return nil
		}
	} else if free := matchFree(w); free != 0 && w&passBit(tag) == 0 && m.tables > 0 {
		slot := slotOf(free)
		*keyIn[K](g, slot), *valueIn[K, V](g, slot) = k, v
		*tagsAt(g) = setTag(w, slot, tag)
		m.len++
		return nil
	}
	return m.putFar(k, v, h)
}

// putFar is put if neither the key nor a free slot for it is in its home.
func (m *Map[K, V]) putFar(k K, v V, h uint64) error {
	g, slot := find[K, V](&m.core, &k, h)
	if g == nil {
		var err error
		if g, slot, err = m.insert(h); err != nil {
			return err
		}
		*keyIn[K](g, slot) = k
	} else if m.hash.kind == otherKeys {
		*keyIn[K](g, slot) = k // -0 may replace +0
	}
	*valueIn[K, V](g, slot) = v
	return nil
}

// PutIfAbsent sets the value of k to v unless the map has k. It returns the value that k then has,
// and whether the map had k before. Errors are as for Put.
func (m *Map[K, V]) PutIfAbsent(k K, v V) (value V, found bool, err error) {
	m.mustBeWritable("PutIfAbsent")
	if value, found = m.Get(k); !found {
		if err = m.Put(k, v); err == nil {
			if value, ok := m.Get(k); ok { // k is not a NaN
				return value, false, nil
			}
			value = v
		}
	}
	return value, found, err
}

// Update calls fn with a pointer to a copy of the value of k, which is zero if the map does not
// have k, and then stores the copy as k's value. If fn panics, the map is unchanged. fn may read
// the map; a call in fn that changes the map panics. A string or []byte is the map's memory while
// fn runs, and is copied afterwards if fn replaces it. Errors are as for Put, after fn has been
// called.
func (m *Map[K, V]) Update(k K, fn func(v *V, found bool)) error {
	m.mustBeWritable("Update")
	v, found := m.Get(k)
	m.lend(func() { fn(&v, found) })
	return m.Put(k, v)
}

// lend calls fn, which must not change the map.
func (m *Map[K, V]) lend(fn func()) {
	m.base.Lend()
	defer m.base.Back()
	fn()
}

// Delete removes k, and reports whether the map had it.
func (m *Map[K, V]) Delete(k K) bool {
	m.mustBeWritable("Delete")
	if m.owned {
		return m.deleteOwned(&k)
	}
	h := hashOf(&m.hash, &k)
	g, slot := find[K, V](&m.core, &k, h)
	if g == nil {
		return false
	}
	m.remove(g, slot, h)
	return true
}

// Len returns the number of entries.
func (m *Map[K, V]) Len() int { return m.len }

// Clear removes all entries, NaNs too, and keeps the memory of tables. It ends running iterations.
// It visits each table and, if the map has strings or bytes, each entry.
func (m *Map[K, V]) Clear() {
	m.mustBeWritable("Clear")
	m.clear()
}

// Grow makes room for n more entries, so that few of the next Puts grow a table; any of them still
// may. It takes time proportional to the map's length, and memory for the slots of n entries. An
// error is the parent's; the entries are then unchanged. Grow panics if n is negative.
func (m *Map[K, V]) Grow(n int) error {
	m.mustBeWritable("Grow")
	arg.AtLeast("hashmap.Map.Grow", "n", n, 0)
	return m.reserve(n)
}

// Close removes all entries and returns all memory to the parent. It visits each table and, if the
// map has strings or bytes, each entry. It ends running iterations. Later calls panic, except
// Close, Len and Stats. Close the map before its parent.
func (m *Map[K, V]) Close() {
	if m.base.MayClose(&mapKind, m.tables > 0) {
		m.clear()
		m.release()
		container.Closed(m, &m.base)
	}
}

func (c *core) mustBeOpen(call string) { c.base.MustBeOpen(&mapKind, call) }

func (c *core) mustBeWritable(call string) { c.base.MustBeWritable(&mapKind, call) }

// clear removes all entries. It stops at the last entry: the tables behind it have no overflow bits
// either.
func (c *core) clear() {
	c.endCursors()
	c.eachTable(func(t table) {
		if c.len == 0 {
			return
		}
		for i := range t.groups() {
			g := t.group(i, c.stride)
			full := matchFull(*tagsAt(g))
			c.len -= bits.OnesCount64(full)
			for ; c.owned && full != 0; full &= full - 1 {
				c.freeSlot(g, slotOf(full))
			}
			*tagsAt(g) = 0
		}
	})
}

// release returns all memory to the parent, before Close ends.
//
// Precondition: the map has no entries.
func (c *core) release() {
	c.eachTable(c.freeTable)
	if c.tables > 0 {
		c.free(c.dir, unsafe.Sizeof(c.dir)<<c.depth())
	}
	c.huge.close(c.base.Parent)
	c.dir, c.tables, c.slots = nil, 0, 0
	c.short, c.texts = false, false
}
