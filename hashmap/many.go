// Batches: many keys in one call.
//
// A batch first loads the lines of all its searches, so that the processor overlaps their cache
// misses. Then it ends the searches one by one.

package hashmap

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
)

// GetMany sets values[i] and found[i] to the results of Get(keys[i]), for each i. It is faster than
// a loop of Gets (BenchmarkGetMany). It panics if values or found is shorter than keys.
func (m *Map[K, V]) GetMany(keys []K, values []V, found []bool) {
	const call = "hashmap.Map.GetMany"
	m.mustBeOpen("GetMany")
	arg.AtLeast(call, "length of values", len(values), len(keys))
	arg.AtLeast(call, "length of found", len(found), len(keys))
	var b batch
	for len(keys) > 0 {
		n := min(batchKeys, len(keys))
		if m.owned {
			m.startOwned(&b, keys[:n])
			for i := range n {
				values[i], found[i] = m.finishOwned(&b, i, &keys[i])
			}
		} else {
			m.start(&b, keys[:n])
			for i := range n {
				values[i], found[i] = m.finish(&b, i, &keys[i])
			}
		}
		keys, values, found = keys[n:], values[n:], found[n:]
	}
}

// PutMany calls Put for each keys[i] and values[i], in order. On an error the entries before the
// failed one are in the map. It panics if values is shorter than keys.
func (m *Map[K, V]) PutMany(keys []K, values []V) error {
	m.mustBeWritable("PutMany")
	arg.AtLeast("hashmap.Map.PutMany", "length of values", len(values), len(keys))
	if m.owned {
		for i := range keys {
			if err := m.putOwned(&keys[i], &values[i]); err != nil {
				return err
			}
		}
		return nil
	}
	var b batch
	for len(keys) > 0 {
		n := min(batchKeys, len(keys))
		m.start(&b, keys[:n])
		for i := range n {
			if err := m.put(keys[i], values[i], b.hashes[i]); err != nil {
				return err
			}
		}
		keys, values = keys[n:], values[n:]
	}
	return nil
}

// A batch is up to batchKeys searches under way.
type batch struct {
	hashes [batchKeys]uint64
	homes  [batchKeys]unsafe.Pointer
	tags   [batchKeys]uint64 // of the homes
	read   byte              // the sum of touched bytes, so that the compiler keeps the loads
}

const batchKeys = 16

// start computes the hashes of up to batchKeys keys and reads their homes.
func (m *Map[K, V]) start(b *batch, keys []K) {
	for i := range keys {
		var h uint64
		if isShort[K]() && m.short {
			h = m.hash.words(wordsOf(&keys[i])) // inlined
		} else {
			h = hashOf(&m.hash, &keys[i])
		}
		b.hashes[i], b.homes[i] = h, m.homeOf(h, strideOf[K, V]())
	}
	for i, g := range b.homes[:len(keys)] {
		b.tags[i] = *tagsAt(g) | uint64(m.early(g, strideOf[K, V]()))
	}
}

// startOwned is start for a map that owns copies. It also touches the block behind the first
// matching tag of each home.
func (m *Map[K, V]) startOwned(b *batch, keys []K) {
	for i := range keys {
		h := hashOf(&m.hash, &keys[i])
		b.hashes[i], b.homes[i] = h, m.homeOf(h, m.stride)
	}
	for i, g := range b.homes[:len(keys)] {
		b.tags[i] = *tagsAt(g)
	}
	for i, g := range b.homes[:len(keys)] {
		if match := matchTag(b.tags[i], tagOf(b.hashes[i])); match != 0 {
			if m.hash.kind == stringKeys {
				b.touch(*refIn(g, slotOf(match)))
			} else {
				b.touch(*(*ref)(m.value(g, slotOf(match))))
			}
		}
	}
}

// touch reads the first byte of a block, if there is one.
func (b *batch) touch(r ref) {
	if p := r.block(); p != nil {
		b.read |= *(*byte)(p)
	}
}

// finish ends search i, for k.
func (m *Map[K, V]) finish(b *batch, i int, k *K) (v V, ok bool) {
	g, w, tag := b.homes[i], b.tags[i], tagOf(b.hashes[i])
	if match := matchTag(w, tag); match != 0 {
		if *keyIn[K](g, slotOf(match)) == *k {
			return *valueIn[K, V](g, slotOf(match)), true
		}
	} else if w&passBit(tag) == 0 {
		return v, false
	}
	return m.getFar(*k, b.hashes[i])
}

// finishOwned is finish for a map that owns copies.
func (m *Map[K, V]) finishOwned(b *batch, i int, k *K) (v V, ok bool) {
	if m.hash.kind == stringKeys {
		g, w, tag := b.homes[i], b.tags[i], tagOf(b.hashes[i])
		if match := matchTag(w, tag); match != 0 {
			if m.keyOf(*refIn(g, slotOf(match))) == *(*string)(unsafe.Pointer(k)) {
				return m.load(g, slotOf(match)), true
			}
		} else if w&passBit(tag) == 0 {
			return v, false
		}
	}
	return m.getOwned(k, b.hashes[i])
}
