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

	// Collect makes the garbage collector close a [Shared] that is unreachable: its memory goes
	// back to the parent, as after Close. Use it if the program does not know when it uses the map
	// for the last time. Where it knows, Close is better: it frees the memory at once, and the
	// collector only some time after its next cycle. [freehold.Stats].Collected counts the maps
	// that the collector closed, and package track lists them. With Collect, calls that allocate or
	// free memory take longer.
	//
	// NewShared panics if the parent's blocks end together, as in an arena. A parent that is
	// neither a [freehold.Heap] nor a wrapper of heaps must not be closed before the collector has
	// closed the map. [New] panics, because results of a [Map] may be the map's own memory, and the
	// program may use them after its last use of the map.
	Collect bool
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
// The pause of a Put is bounded: it moves the entries of at most one table of 16 KiB, or of four
// groups of 16 entries if these are larger, and may copy the directory, which has 8 bytes for each
// table. It allocates up to four blocks. Delete frees the entry's slot at once, so a map with a
// steady stream of deletions and insertions does not slow down. Its tables may take up to twice the
// memory that they took when it was filled, since a table grows whenever chance gives it more
// entries than ever before, and never shrinks. Only Close, and deleting strings and bytes, return
// memory to the parent. To shrink a map, copy it to a new one and close the old one.
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
	if o.Collect {
		arg.Panicf("hashmap.New", "Options.Collect is for a Shared: a Map returns its own memory")
	}
	c := &m.core
	c.hash, c.valueKind = kindsOf[K, V]("hashmap.New")
	if c.hash.kind != stringKeys && c.valueKind == noText && vt.Size() >= largeBytes {
		c.valueKind = isLarge
	}
	c.owned = c.hash.kind == stringKeys || c.valueKind != noText
	switch {
	case c.hash.kind == stringKeys && c.valueKind == noText:
		c.layout = layoutOf[ref, uint64]()
		c.head, c.align, c.keyLimit = vt.Size(), vt.Align(), longBytes
	case c.hash.kind == stringKeys:
		c.layout = layoutOf[ref, uint64]()
		c.pairs, c.keyLimit = true, pairKeyLimit
	case c.valueKind != noText:
		c.layout = layoutOf[K, ref]()
	default:
		c.layout = layoutOf[K, V]()
	}
	if c.hash.kind == stringKeys {
		c.hashAt = func(key unsafe.Pointer) uint64 { return *hashIn(key) }
	} else {
		c.hashAt = func(key unsafe.Pointer) uint64 { return hashOf(&c.hash, (*K)(key)) }
	}
	c.short = c.hash.kind == plainKeys && isShort[K]() && !c.owned
	c.texts = c.pairs || c.hash.kind == stringKeys && c.head > 0
	c.reset()
	c.huge.init(c.tableBytes(uintptr(c.limits[0])))
	container.Make(m, &c.base, &mapKind, parent, o.Name)
	return m
}

// find returns the slot of k, whose hash is h.
//
// Precondition: slots have the layout of K and V, which is a ref if values are text or large.
func find[K comparable, V any](m *core, k *K, h uint64) (at spot, ok bool) {
	key, slot, tags := probe(m, h)
	switch {
	case key == absent:
		return at, false
	case key != further && *(*K)(pointer(key)) == *k:
		return spot{pointer(key), pointer(tags), slot}, true
	}
	return m.tableOf(h).search(&m.layout, h, func(at spot) bool { return *(*K)(at.key) == *k })
}

// Get returns the value of k, and whether the map has k. A string or []byte is the map's memory,
// valid until the next call that changes the map.
func (m *Map[K, V]) Get(k K) (v V, ok bool) {
	// Nearly every search ends in the home. The fewer instructions it has, the more searches the
	// processor overlaps, so there is no call but the probe.
	switch {
	case unsafe.Sizeof(k) == 8 && m.short:
		key, slot, _, _ := probeWord(&m.core, *(*uint64)(unsafe.Pointer(&k)))
		if key == absent {
			return v, false
		}
		return *valueIn[K, V](pointer(key), slot), true
	case isShort[K]() && m.short:
		h := m.hash.words(wordsOf(&k))
		key, slot, _ := probe(&m.core, h)
		if key == absent {
			return v, false
		}
		if key == further || *(*K)(pointer(key)) != k {
			return m.getFar(k, h)
		}
		return *valueIn[K, V](pointer(key), slot), true
	case m.texts:
		if s := (*string)(unsafe.Pointer(&k)); m.pairs && isShortText(*s) {
			key, _, _, _ := probeText(&m.core, hidden(*s))
			if key == absent {
				return v, false
			}
			r := *refIn(spot{key: pointer(key)})
			if uintptr(r>>refAddrBits)&pairKeyLimit == pairKeyLimit {
				return viewOf[V](m.valueKind, r.longValue()), true
			}
			value := unsafe.Slice((*byte)(unsafe.Add(r.block(), len(*s))), r>>valueShift)
			return *(*V)(unsafe.Pointer(&value)), true // a string is the beginning of a slice
		}
		at, _, ok := m.lookUp(*(*string)(unsafe.Pointer(&k)))
		switch {
		case !ok:
			return v, false
		case m.pairs:
			return viewOf[V](m.valueKind, refIn(at).pairValue()), true
		}
		return *(*V)(refIn(at).block()), true
	}
	return m.getSlow(k)
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
	if at, ok := find[K, V](&m.core, &k, h); ok {
		return *valueIn[K, V](at.key, at.slot), true
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
	if at, ok := find[K, V](&m.core, &k, hashOf(&m.hash, &k)); ok {
		return valueIn[K, V](at.key, at.slot)
	}
	return nil
}

// Put sets the value of k. An error is the parent's and matches [freehold.ErrOutOfMemory]; the map
// is then unchanged. Replacing a value needs no memory, unless V is string or []byte.
func (m *Map[K, V]) Put(k K, v V) error {
	m.base.MustBeWritable(&mapKind, "Put")
	if unsafe.Sizeof(k) != 8 || !m.short {
		if m.owned {
			return m.putOwned(&k, &v)
		}
		return m.putFar(k, v, hashOf(&m.hash, &k))
	}
	key, slot, tags, h := probeWord(&m.core, *(*uint64)(unsafe.Pointer(&k)))
	if key != absent {
		*valueIn[K, V](pointer(key), slot) = v
		return nil
	}
	at, err := m.insertAtHome(h, slot, tags)
	if err != nil {
		return err
	}
	*(*K)(at.key), *valueIn[K, V](at.key, at.slot) = k, v
	return nil
}

// putFar is Put for a map without copies; h is the hash of k.
func (m *Map[K, V]) putFar(k K, v V, h uint64) error {
	at, found := find[K, V](&m.core, &k, h)
	if !found {
		var err error
		if at, err = m.insert(h); err != nil {
			return err
		}
	}
	if !found || m.hash.kind == otherKeys { // -0 may replace +0
		*(*K)(at.key) = k
	}
	*valueIn[K, V](at.key, at.slot) = v
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
	m.base.MustBeWritable(&mapKind, "Delete")
	if m.owned {
		return m.deleteOwned(&k)
	}
	if unsafe.Sizeof(k) == 8 && m.short {
		key, slot, tags, h := probeWord(&m.core, *(*uint64)(unsafe.Pointer(&k)))
		if key != absent {
			m.remove(m.tableOf(h), spot{pointer(key), pointer(tags), slot}, h)
			m.len--
		}
		return key != absent
	}
	h := hashOf(&m.hash, &k)
	at, ok := find[K, V](&m.core, &k, h)
	if ok {
		m.remove(m.tableOf(h), at, h)
		m.len--
	}
	return ok
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
// may. An empty map then takes no more memory than one to which n Puts have added entries, and
// another map a quarter more at most, if it has many tables. Grow takes time proportional to that
// memory. Grow panics if n is negative.
//
// An error is the parent's; the entries are then unchanged. If the map had no memory, it still has
// none. Otherwise it keeps the memory that it has taken, and the next Puts may fail.
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
		m.dir, m.short, m.texts = nil, false, false
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
			entries := t.full(i)
			c.len -= bits.OnesCount64(entries)
			for ; c.owned && entries != 0; entries &= entries - 1 {
				c.freeSlot(t.at(&c.layout, i, first(entries)))
			}
		}
		clear(unsafe.Slice((*byte)(t.base()), t.groups()*headBytes))
	})
}

// release returns all memory to the parent.
//
// Precondition: the map has no entries.
func (c *core) release() {
	c.eachTable(c.freeTable)
	if c.tables > 0 {
		c.free(c.dir, unsafe.Sizeof(c.dir)<<c.depth())
	}
	c.huge.close(c.base.Parent)
	c.reset()
}
