// Shared: a map for any number of goroutines, whose readers take no lock.
//
//	directory   | table | table | table | ...      by the top bits of the hash
//	                |
//	table       | head | group | group | ... |     shared_table.go
//	                      |
//	group       | tags | version | 7 entries |
//
// Each table has a lock in its head, which writers take. Each group is a seqlock: a reader loads
// the version of a group, its entries, and the version again. If that has changed, the reader takes
// the lock. shared_write.go has the writers, shared_grow.go the replacement of tables, and
// shared_text.go strings, bytes and large values.
//
// # Why a reader is correct
//
// Go's atomic operations have one total order. A reader loads every word atomically. A writer
// stores it atomically or, on amd64, by a plain store, which that processor makes visible in
// program order: see shared_words_plain.go.
//
//	reader:  R1 load the directory's entry e        R4 load tags, keys, values
//	         R2 load the group's version            R5 load the version again
//	         R3 load the entry again, it is e
//	writer:  W1 raise the version    W2 store keys and values    W3 store tags
//
// A replaced table is not returned to the parent before Close. It is used again only as a table
// with groups at the same addresses. So R2 to R5 always read groups, even if the table was replaced
// after R1. Versions only grow.
//
// At R3 the table was the one for this hash. If R5 loads the same version as R2, then no word of an
// entry that R4 loaded was stored between R2 and R5, because W1 comes before W2. So R4 saw the
// entries as they were at R3, except for deletions and for replaced values of one word since then.
// Each of these is one store, so R4 saw the key's state at some moment between R3 and R5. A longer
// value is replaced while the version is odd, and R2 does not accept an odd version.
//
// If no group of the search has the key, the key was absent from each of them at some moment.
// Entries do not move between groups of a table. If the key was in another group at that moment, it
// was deleted and put again during the search, and in between it was absent from all groups.

package hashmap

import (
	"iter"
	"reflect"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/container"
)

// Shared is a hash map that is safe for concurrent use, with all entries in memory of its parent.
// It is to [Map] as [sync.Map] is to Go's map. [NewShared] makes one. Calls of the zero Shared
// panic, except Len, Stats and Close.
//
// K and V may be any types without Go pointers, or string; V may also be []byte. The map copies
// strings and bytes. It returns copies too, on the Go heap; AppendTo and View avoid these.
//
// Get takes no lock, unless it meets a writer in the same group of 7 entries. Put, Delete and
// Update lock a table of up to 16 KiB, or of 49 entries if these take more. A Put may copy one such
// table to make room. Calls for one key are linearizable: each takes effect at one moment between
// its call and its return.
//
// An entry with a K and a V of 8 bytes takes 32 to 48 bytes, depending on how full the tables are:
// see Stats. Larger entries take 2.2 to 3.5 times their size, in whole words. Tables split, and
// never join: after many deletions and insertions for each entry, an entry takes up to 48 bytes
// more than its K and V. The map keeps replaced tables for reuse. Only Close returns them to the
// parent.
//
// A V of 128 bytes or more is in a block of its own, as strings and bytes are. Its entry takes as
// much as one with a V of 8 bytes. Replacing such a value takes a new block, and fails if the
// parent refuses it. The old block is freed when its readers have left.
//
// On the Go heap a map takes less than 4 KiB, and 2 KiB more for each 64 replaced or deleted blocks
// that wait for their readers.
type Shared[K comparable, V any] struct {
	sharedTables
	_      [lineBytes]byte
	hasher hasher
	keys   textKind
	values textKind
}

var sharedKind = container.Kind{Type: "hashmap.Shared", Maker: "hashmap.NewShared", Is: "the map is", Shared: true}

// NewShared returns an empty map over parent, which must be safe for concurrent use, as a
// [freehold.Heap] is, and must outlive the map. [freehold.NewLocked] makes any allocator safe. The
// map takes no memory before the first Put; Close returns it. NewShared panics if parent is nil, or
// if K or V has Go pointers or is larger than 16 MiB.
func NewShared[K comparable, V any](parent freehold.Allocator, o *Options) *Shared[K, V] {
	if o == nil {
		o = &Options{}
	}
	m := &Shared[K, V]{}
	m.hasher, m.values = kindsOf[K, V]("hashmap.NewShared")
	m.keys = textKindOf(reflect.TypeFor[K]())
	var k K
	var v V
	if m.values == noText && unsafe.Sizeof(v) >= largeBytes {
		m.values = isLarge
	}
	m.direct = m.keys == noText && m.values == noText
	keyBytes, valueBytes := wordsFor[K](), wordsFor[V]()
	if m.keys != noText {
		keyBytes = refBytes
	}
	if m.values != noText {
		valueBytes = refBytes
	}
	if !m.direct { // references are aligned, on 32 bits too
		keyBytes, valueBytes = (keyBytes+refBytes-1)&^(refBytes-1), (valueBytes+refBytes-1)&^(refBytes-1)
	}
	m.init(keyBytes, valueBytes, unsafe.Sizeof(k)+unsafe.Sizeof(v))
	container.Make(m, &m.base, &sharedKind, parent, o.Name)
	return m
}

// Get returns the value of k, and whether the map has k. A string or []byte is a copy.
func (m *Shared[K, V]) Get(k K) (v V, ok bool) {
	if readersLock || !m.direct {
		return m.getSlow(k)
	}
	var h uint64
	if unsafe.Sizeof(k) == 8 && m.hasher.kind == plainKeys { // inlined
		h = m.hasher.word(*(*uint64)(unsafe.Pointer(&k)))
	} else {
		h = hashSlow(&m.hasher, &k)
	}
	at := entryFor(m.dir.Load(), h)
	m.seam.At(readDirectory)
	e := at.Load() // R1
	m.seam.At(readTable)
	if e <= replacedDirectory {
		return m.getSlow(k)
	}
	// The layout is m.layout, as constants.
	l := shardLayoutOf(wordsFor[K](), wordsFor[V]())
	tag, groups := tagOf(h), groupsOf(e)
	i := homeOf(h, groups)
	for range groups {
		g := pointer(tableOf(e) + (i+1)*l.stride)
		version := atomic.LoadUint64(versionOf(g)) // R2
		m.seam.At(readVersion)
		if version&1 != 0 {
			break
		}
		if at.Load() != e { // R3
			break
		}
		m.seam.At(readEntry)
		w := atomic.LoadUint64(tagsAt(g)) // R4
		m.seam.At(readTags)
		for match := matchTag(w, tag); match != 0; match &= match - 1 {
			slot := unsafe.Add(g, shardHeadBytes+slotOf(match)*l.slot)
			if loadCell[K](slot) == k {
				m.seam.At(readKey)
				v := loadCell[V](unsafe.Add(slot, l.value))
				m.seam.At(readValue)
				if atomic.LoadUint64(versionOf(g)) != version { // R5
					return m.getSlow(k)
				}
				return v, true
			}
		}
		if atomic.LoadUint64(versionOf(g)) != version { // R5
			break
		}
		if w&passBit(tag) == 0 {
			return v, false
		}
		if i++; i == groups {
			i = 0
		}
	}
	return m.getSlow(k)
}

// getSlow is Get for maps with text and in race builds, and after Get found no table or met a
// writer.
func (m *Shared[K, V]) getSlow(k K) (v V, ok bool) {
	m.mustBeOpen("Get")
	h := hashOf(&m.hasher, &k)
	if !readersLock && !m.direct {
		if v, found, sure := m.getText(h, &k); sure {
			return v, found
		}
	}
	ok = m.locked(h, &k, func(slot unsafe.Pointer) { v = m.valueAt(slot) })
	return v, ok
}

// locked calls use with the slot of k under its table's lock, and reports whether the map has k.
func (m *Shared[K, V]) locked(h uint64, k *K, use func(slot unsafe.Pointer)) (found bool) {
	m.seam.At(readSlow)
	x, ok := m.enter(h)
	if !ok {
		return false
	}
	defer m.leave(x)
	g, i := m.find(x, h, k)
	if g == nil {
		return false
	}
	use(m.slot(g, i))
	return true
}

// getText is Get for a map with text. The result is sure unless it met a writer.
func (m *Shared[K, V]) getText(h uint64, k *K) (v V, found, sure bool) {
	guard := m.retired.readers.Enter() // before R1
	defer guard.Leave()
	s, sure := m.look(h, k)
	if s.slot == nil {
		return v, false, sure
	}
	v = m.valueAt(s.slot)
	m.seam.At(readValue)
	return v, true, s.same()
}

// A sight is a slot where a reader saw a key, and the version of its group before that.
type sight struct {
	group, slot unsafe.Pointer
	version     uint64
}

// same is R5: it reports whether all words loaded from the slot belong to one entry.
func (s sight) same() bool { return atomic.LoadUint64(versionOf(s.group)) == s.version }

// look searches for k in a map with text, under a guard. It returns no slot if there is no entry.
// If it met a writer, it returns no slot and is not sure.
func (m *Shared[K, V]) look(h uint64, k *K) (s sight, sure bool) {
	at, e := m.lookUp(h)
	m.seam.At(readTable)
	if e == 0 {
		return s, true
	}
	tag, groups := tagOf(h), groupsOf(e)
	i := homeOf(h, groups)
	for range groups {
		g := m.group(tableOf(e), i)
		version := atomic.LoadUint64(versionOf(g))
		m.seam.At(readVersion)
		if version&1 != 0 || at.Load() != e {
			return s, false
		}
		m.seam.At(readEntry)
		w := atomic.LoadUint64(tagsAt(g))
		m.seam.At(readTags)
		for match := matchTag(w, tag); match != 0; match &= match - 1 {
			slot := m.slot(g, slotOf(match))
			if m.isKey(slot, k) {
				m.seam.At(readKey)
				return sight{g, slot, version}, true
			}
		}
		if atomic.LoadUint64(versionOf(g)) != version {
			return s, false
		}
		if w&passBit(tag) == 0 {
			return s, true
		}
		if i++; i == groups {
			i = 0
		}
	}
	return s, true
}

// All yields the entries, in no particular order. It yields each key at most once, and each entry
// that stays during the whole loop. An entry that is put or deleted during the loop may be yielded
// in any state that it has during the loop. All copies the entries of one table under its lock. The
// loop's body runs without a lock, and may call any method.
func (m *Shared[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		m.mustBeOpen("All")
		type entry struct {
			k K
			v V
		}
		var entries []entry
		for pos, more := uint64(0), true; more; {
			entries = entries[:0]
			pos, more = m.visit(pos, func(x held) {
				if headOf(x.e).live == 0 {
					return
				}
				m.eachSlot(x.e, func(_, slot unsafe.Pointer) {
					entries = append(entries, entry{m.ownKeyAt(slot), m.valueAt(slot)})
				})
			})
			for _, e := range entries {
				if !yield(e.k, e.v) {
					return
				}
			}
		}
	}
}

// Clear removes all entries, one table after the other, and keeps the memory of tables. Entries
// that are put during the call may stay.
func (m *Shared[K, V]) Clear() {
	m.mustBeOpen("Clear")
	for pos, more := uint64(0), true; more; {
		pos, more = m.visit(pos, func(x held) {
			if m.direct {
				m.empty(x)
				return
			}
			var texts []ref
			m.eachSlot(x.e, func(_, slot unsafe.Pointer) { texts = m.appendTexts(texts, slot) })
			m.empty(x)
			m.retired.retire(&m.sharedTables, texts...)
		})
	}
}

// Close returns all memory to the parent. No other call may be under way. Later calls panic, except
// Close, Len and Stats. Close the map before its parent.
func (m *Shared[K, V]) Close() {
	if !m.base.MayClose(&sharedKind, m.holds()) {
		return
	}
	if !m.direct {
		if !m.retired.readers.Advance().Passed() {
			arg.Panicf("hashmap.Shared.Close", "a call is under way, such as View")
		}
		m.Clear()
		m.retired.reclaim(&m.sharedTables)
	}
	m.close()
	container.Closed(m, &m.base)
}
