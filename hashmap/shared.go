// Shared: a map for any number of goroutines, whose readers take no lock.
//
//	directory   | table | table | table | ...      by the top bits of the hash
//	                |
//	table       | lock | tags, version | ... | slots | ... |     shared_head.go, table.go
//
// Map and Shared have the same kind of tables. In a Shared each table also has a lock for writers,
// and each group is a seqlock: a reader loads the version of a group, its entries, and the version
// again. If the version has changed, the reader takes the lock. shared_write.go has the writers,
// shared_grow.go the replacement of tables, and shared_text.go strings, bytes and large values.
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
// entries as they were at R3, with two exceptions: since R3, an entry may have been deleted, or a
// value of one word replaced. Each of these is one store, so R4 saw the key's state at some moment
// between R3 and R5. A longer value is replaced while the version is odd, and R2 does not accept an
// odd version.
//
// If no group of the search has the key, the key was absent from each of them at some moment.
// Entries do not move between groups of a table. If the key was in another group at that moment, it
// was deleted and put again during the search, and in between it was absent from all groups.
//
// # The last use of the map
//
// With Options.Collect the collector may free the memory as soon as the map is unreachable. So each
// access to the memory is followed by a use of the map. A call that holds a guard or a lock uses
// the map to release it: left, leave or Unlock. Other calls end with runtime.KeepAlive.

package hashmap

import (
	"iter"
	"math/rand/v2"
	"reflect"
	"runtime"
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
// Get takes no lock, unless it meets a writer in the same group of 16 entries. Put, Delete and
// Update lock a table of up to 16 KiB, or of 64 entries if these take more. A Put may copy one such
// table to make room. Calls for one key are linearizable: each takes effect at one moment between
// its call and its return.
//
// An entry with a K and a V of 8 bytes takes 30 to 36 bytes in a map of more than 100,000 entries,
// and up to 65 in a smaller one, which keeps more replaced tables for reuse: see Stats. On 64
// processors tables split sooner, and an entry takes 40 to 55 bytes in a map of 100,000. Larger
// entries take 1.5 to 2.2 times their size, in whole words. Tables split, and never join: as in a
// Map, a steady stream of deletions and insertions may double their memory. Only Close, or the
// collector with Options.Collect, returns it.
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
	m.hash, m.values = kindsOf[K, V]("hashmap.NewShared")
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
	m.hashAt = m.hashOfSlot
	m.short = m.hash.kind == plainKeys && isShort[K]()
	m.init(keyBytes, valueBytes, unsafe.Sizeof(k)+unsafe.Sizeof(v))
	container.Make(m, &m.base, &sharedKind, parent, o.Name)
	if o.Collect {
		container.Collect(m, &m.base, &sharedKind)
	}
	return m
}

// Get returns the value of k, and whether the map has k. A string or []byte is a copy.
func (m *Shared[K, V]) Get(k K) (v V, ok bool) {
	if readersLock || !m.direct {
		return m.getSlow(k)
	}
	var (
		slot    uintptr
		version *uint64
		seen, h uint64
	)
	if unsafe.Sizeof(k) == 8 && m.short {
		slot, version, seen, h = peekWord(&m.sharedTables, *(*uint64)(unsafe.Pointer(&k)))
	} else {
		h = hashSlow(&m.hash, &k)
		slot, version, seen = peek(&m.sharedTables, h)
		if slot > further && loadCell[K](pointer(slot)) != k {
			slot = further
		}
	}
	if slot == absent {
		runtime.KeepAlive(m)
		return v, false
	}
	if slot > further {
		m.seam.At(readKey)
		found := loadCell[V](unsafe.Add(pointer(slot), -int(wordsFor[V]())))
		m.seam.At(readValue)
		if atomic.LoadUint64(version) == seen { // R5
			runtime.KeepAlive(m)
			return found, true
		}
	}
	return m.getFar(k, h)
}

// getFar is Get of k, whose hash is h, after a peek that did not find the entry.
func (m *Shared[K, V]) getFar(k K, h uint64) (v V, ok bool) {
	m.base.MustBeOpen(&sharedKind, "Get")
	if v, found, sure := m.valueOf(m.seek(h, &k)); sure {
		return v, found
	}
	return m.getLocked(h, &k)
}

// getSlow is Get for all maps and all keys.
func (m *Shared[K, V]) getSlow(k K) (v V, ok bool) {
	m.base.MustBeOpen(&sharedKind, "Get")
	h := hashOf(&m.hash, &k)
	if !readersLock {
		if v, found, sure := m.getUnlocked(h, &k); sure {
			return v, found
		}
	}
	return m.getLocked(h, &k)
}

func (m *Shared[K, V]) getLocked(h uint64, k *K) (v V, ok bool) {
	ok = m.locked(h, k, func(slot unsafe.Pointer) { v = m.valueAt(slot) })
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
	at, found := m.find(x, h, k)
	if found {
		use(at.key)
	}
	return found
}

// getUnlocked is Get without the lock. The result is sure unless it met a writer.
func (m *Shared[K, V]) getUnlocked(h uint64, k *K) (v V, found, sure bool) {
	if !m.direct {
		guard := m.retired.readers.Enter() // before R1
		defer m.left(guard)
	}
	return m.valueOf(m.look(h, k))
}

// valueOf is the end of a Get without the lock, after look or seek.
func (m *Shared[K, V]) valueOf(s sight, isSure bool) (v V, found, sure bool) {
	if s.slot != nil {
		v = m.valueAt(s.slot)
		m.seam.At(readValue)
		found, isSure = true, s.same()
	}
	runtime.KeepAlive(m)
	return v, found, isSure
}

// A sight is a slot where a reader saw a key, and the version of its group before that.
type sight struct {
	slot    unsafe.Pointer
	version *uint64
	seen    uint64
}

// same is R5: it reports whether all words loaded from the slot belong to one entry.
func (s sight) same() bool { return atomic.LoadUint64(s.version) == s.seen }

// look searches for k, in a map with text under a guard. It returns no slot if there is no entry.
// If it met a writer, it returns no slot and is not sure.
func (m *Shared[K, V]) look(h uint64, k *K) (s sight, sure bool) {
	slot, version, seen := peek(&m.sharedTables, h)
	switch {
	case slot == absent:
		return s, true
	case slot > further && m.isKey(pointer(slot), k):
		m.seam.At(readKey)
		return sight{pointer(slot), version, seen}, true
	}
	return m.seek(h, k)
}

// seek is look without the peek.
func (m *Shared[K, V]) seek(h uint64, k *K) (s sight, sure bool) {
	at, e := m.lookUp(h)
	m.seam.At(readTable)
	if e == 0 {
		return s, true
	}
	t, tag := tableAt(e), fingerprint(h)
	i := t.home(h)
	for range t.groups() {
		group := sight{version: versionOf(t.tags(i))}
		group.seen = atomic.LoadUint64(group.version) // R2
		m.seam.At(readVersion)
		if group.seen&1 != 0 || at.Load() != e { // R3
			return s, false
		}
		m.seam.At(readEntry)
		lo, hi := loadTags(t.tags(i)) // R4
		m.seam.At(readTags)
		for match := matching(lo, hi, tag); match != 0; match &= match - 1 {
			group.slot = t.at(&m.layout, i, first(match)).key
			if m.isKey(group.slot, k) {
				m.seam.At(readKey)
				return group, true
			}
		}
		passed := loadByte(t.overflow(i))&overflowBit(tag) != 0
		m.seam.At(readOverflow)
		if !group.same() {
			return s, false
		}
		if !passed {
			return s, true
		}
		i = t.after(i)
	}
	return s, true
}

// All yields the entries, in no particular order, from a random table on. It yields each key at
// most once, and each entry that stays during the whole loop. An entry that is put or deleted
// during the loop may be yielded in any state that it has during the loop. All copies the entries
// of one table under its lock. The loop's body runs without a lock, and may call any method.
func (m *Shared[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		m.base.MustBeOpen(&sharedKind, "All")
		type entry struct {
			k K
			v V
		}
		var entries []entry
		first := m.leastHash(rand.Uint64())
		for pos := first; ; {
			entries = entries[:0]
			pos, _ = m.visit(pos, func(x held) {
				if x.head().live == 0 {
					return
				}
				m.eachSlot(x.table, func(slot unsafe.Pointer) {
					entries = append(entries, entry{m.ownKeyAt(slot), m.valueAt(slot)})
				})
			})
			for _, e := range entries {
				if !yield(e.k, e.v) {
					return
				}
			}
			if pos == first {
				return
			}
		}
	}
}

// Clear removes all entries, one table after the other, and keeps the memory of tables. Entries
// that are put during the call may stay.
func (m *Shared[K, V]) Clear() {
	m.base.MustBeOpen(&sharedKind, "Clear")
	for pos, more := uint64(0), true; more; {
		pos, more = m.visit(pos, func(x held) {
			if x.head().live == 0 {
				return
			}
			var texts []ref
			if !m.direct {
				m.eachSlot(x.table, func(slot unsafe.Pointer) { texts = m.appendTexts(texts, slot) })
			}
			x.clear()
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
