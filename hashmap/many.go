// Batches: many keys in one call.
//
// A batch first loads the lines of all its searches, so that the processor overlaps their cache
// misses. Then it ends the searches one by one.

package hashmap

import (
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
			if err := m.Put(keys[i], values[i]); err != nil {
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
	keys   [batchKeys]uintptr // results of probe
	slots  [batchKeys]uintptr
	read   byte // the sum of touched bytes, so that the compiler keeps the loads
}

const batchKeys = 16

// start searches the homes of up to batchKeys keys. It first loads the lines of all searches.
// Without that, the processor would overlap few cache misses, because a probe has many
// instructions.
func (m *Map[K, V]) start(b *batch, keys []K) {
	for i := range keys {
		if isShort[K]() && m.short {
			b.hashes[i] = m.hash.words(wordsOf(&keys[i])) // inlined
		} else {
			b.hashes[i] = hashOf(&m.hash, &keys[i])
		}
		b.read |= loadAhead(&m.core, b.hashes[i])
	}
	for i := range keys {
		b.keys[i], b.slots[i], _ = probe(&m.core, b.hashes[i])
	}
}

// startOwned is start for a map that owns copies. It also touches the block behind each key.
func (m *Map[K, V]) startOwned(b *batch, keys []K) {
	m.start(b, keys)
	for i := range keys {
		if b.keys[i] > further {
			at := spot{key: pointer(b.keys[i]), slot: b.slots[i]}
			if m.hash.kind == stringKeys {
				b.touch(*refIn(at))
			} else {
				b.touch(*(*ref)(m.value(at)))
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
	switch key := b.keys[i]; {
	case key == absent:
		return v, false
	case key != further && *(*K)(pointer(key)) == *k:
		return *valueIn[K, V](pointer(key), b.slots[i]), true
	}
	return m.getFar(*k, b.hashes[i])
}

// finishOwned is finish for a map that owns copies.
func (m *Map[K, V]) finishOwned(b *batch, i int, k *K) (v V, ok bool) {
	if b.keys[i] == absent {
		return v, false
	}
	if m.texts { // Get searches in assembly, and its lines are loaded
		return m.Get(*k)
	}
	return m.getOwned(k, b.hashes[i])
}
