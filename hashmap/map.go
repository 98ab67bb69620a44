// Map: the interface, and the paths of a key that is found.
//
// group.go has the layout that a search reads, table.go how entries come and leave,
// directory.go the tables, grow.go how they grow.

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
	// package track. It may be empty, and several may have one name. To account for the
	// memory in profiles too, put a [freehold.Tagged] below.
	Name string
}

// Map is a hash map in memory of an allocator, its parent. It holds a constant few
// objects on the Go heap, whatever it holds itself. It is not safe for concurrent use:
// like Go's map, it may be read by many goroutines at a time, or used by one that
// writes. Unlike Go's map, it does not notice two writers: builds with -race do. [New]
// makes one; calls of the zero Map panic, except Len, Stats and Close.
//
// K and V are types without Go pointers, or string or, for V, []byte. Strings and bytes
// are copied in. What the map returns of them is its own memory: it is valid until the
// next call that changes the map, and []byte must not be written to. Beside a key that is
// no string, a V of 128 bytes or more is in a block of its own.
//
// Keys are equal as == says. As in Go's map, a NaN is never found: each Put adds an
// entry, which All yields and only Clear removes.
//
// A Put moves the entries of one table, which has 16 KiB, or one group if that is more,
// and when the directory of the tables doubles it copies that, 8 bytes for each. It
// allocates up to four blocks. Delete frees the entry's slot at once, so a map with as
// many deletions as insertions does not slow down. Its tables may come to take about twice
// what they took when it was filled: each grows when chance brings it more entries than it
// ever had, and none shrinks. Only Close and deletion of strings and bytes return memory
// to the parent: to shrink a map, copy it to a new one and close it.
//
// Each map hashes with secret random numbers of its own, so that nobody can choose keys
// that collide. Were all hashes alike, the map would work, and take time in
// proportion to its length.
type Map[K comparable, V any] struct {
	core
}

var mapKind = container.Kind{Type: "hashmap.Map", Maker: "hashmap.New", Is: "the map is"}

// New returns an empty map over parent, which must outlive it. It panics if parent is
// nil, if K or V holds a Go pointer, with the path of the field, and if one of them is
// larger than 16 MiB. It takes no memory before the first Put. Close returns all memory
// to the parent. A map dropped without Close leaks it until the parent is closed;
// FREEHOLD_DEBUG=leak reports that.
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

// keyIn returns a slot's key.
//
// Precondition: g is a group of a map with keys of type K, which are no strings.
func keyIn[K comparable](g unsafe.Pointer, slot uintptr) *K {
	var k K
	return (*K)(unsafe.Add(g, tagBytes*some[K]()+slot*unsafe.Sizeof(k)))
}

// valueIn returns a slot's value.
//
// Precondition: g is a group of a map with those types, which owns no copies.
func valueIn[K comparable, V any](g unsafe.Pointer, slot uintptr) *V {
	var v V
	return (*V)(unsafe.Add(g, valuesOf[K, V]()*some[V]()+slot*unsafe.Sizeof(v)))
}

// Get returns the value of k, and whether the map has it. If V is a string or []byte, it is
// the map's memory, valid until the next call that changes the map.
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
	// The first group, where nearly every search ends, without a call: the less there is
	// to do, the more searches the processor has under way at once.
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

// early reads the second line of the group at g, if there is one, and returns 0. What
// depends on it waits for the line, and the processor asks for the line at once, together
// with the first: otherwise it would ask for the value's after the search in the tags.
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

// At returns the address of the value of k, or nil if the map does not have it. It is
// valid until the next call that changes the map. At panics if V is a string or []byte.
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

// Put sets the value of k. On an error, which is the parent's and matches
// [freehold.ErrOutOfMemory], nothing has changed. A key that the map has needs no memory,
// unless V is a string or []byte.
func (m *Map[K, V]) Put(k K, v V) error {
	m.mustBeWritable("Put")
	if m.owned {
		return m.putOwned(&k, &v)
	}
	return m.put(k, v, hashOf(&m.hash, &k))
}

// put is Put for a map without copies. h is the hash of k.
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

// putFar is put where the home does not decide.
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

// PutIfAbsent sets the value of k to v unless the map has k. It returns the value that k
// has then, and whether the map had it before. Errors are those of Put.
func (m *Map[K, V]) PutIfAbsent(k K, v V) (value V, found bool, err error) {
	m.mustBeWritable("PutIfAbsent")
	if value, found = m.Get(k); !found {
		if err = m.Put(k, v); err == nil {
			if value, ok := m.Get(k); ok { // k is no NaN
				return value, false, nil
			}
			value = v
		}
	}
	return value, found, err
}

// Update calls fn with the value of k, which is zero if the map does not have k, and
// found says so. What fn leaves there is k's value then; if fn panics, the map is as before.
// fn may read the map; a call in it that changes the map panics. If V is a string or []byte,
// fn sees the map's memory and what it leaves is copied. Errors are those of Put; fn may
// have been called.
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

// Clear removes all entries, NaNs too, and keeps the memory of tables. It ends
// iterations that are under way. It visits each table and, if the map has strings or
// bytes, each entry.
func (m *Map[K, V]) Clear() {
	m.mustBeWritable("Clear")
	m.clear()
}

// Grow makes room for n more entries, so that few of the next Puts grow a table; each
// still may. It takes time in proportion to the map's length, and memory for the slots of all
// n. On an error, which is the parent's, the entries are as they were. It panics if n is
// negative.
func (m *Map[K, V]) Grow(n int) error {
	m.mustBeWritable("Grow")
	arg.AtLeast("hashmap.Map.Grow", "n", n, 0)
	return m.reserve(n)
}

// Close removes all entries and returns all memory to the parent. It visits each table
// and, if the map has strings or bytes, each entry. It ends iterations that are under way. Later calls
// panic, except Close, Len and Stats. Close the map before its parent.
func (m *Map[K, V]) Close() {
	if m.base.MayClose(&mapKind, m.tables > 0) {
		m.clear()
		m.release()
		container.Closed(m, &m.base)
	}
}

func (c *core) mustBeOpen(call string) { c.base.MustBeOpen(&mapKind, call) }

func (c *core) mustBeWritable(call string) { c.base.MustBeWritable(&mapKind, call) }

// clear removes all entries. It visits tables up to the last entry: beyond, there are no
// overflow bits either.
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

// release returns all memory to the parent, for good.
//
// Precondition: the map is clear.
func (c *core) release() {
	c.eachTable(c.freeTable)
	if c.tables > 0 {
		c.free(c.dir, unsafe.Sizeof(c.dir)<<c.depth())
	}
	c.huge.close(c.base.Parent)
	c.dir, c.tables, c.slots = nil, 0, 0
	c.short, c.texts = false, false
}
