// Writers of a Shared, which hold the lock of the key's table.

package hashmap

import (
	"sync/atomic"
	"unsafe"
)

// Put sets the value of k. An error matches [freehold.ErrOutOfMemory]; the map is then unchanged. A
// NaN is never found, so each Put of one adds an entry.
func (m *Shared[K, V]) Put(k K, v V) error {
	m.mustBeOpen("Put")
	h := hashOf(&m.hasher, &k)
	for {
		x, err := m.enterNew(h)
		if err != nil {
			return err
		}
		g, i := m.find(x, h, &k)
		if g != nil || headOf(x.e).left > 0 {
			err = m.write(x, h, g, i, &k, &v)
			m.leave(x)
			return err
		}
		if err := m.makeRoom(x, h); err != nil {
			return err
		}
	}
}

// PutIfAbsent sets the value of k to v unless the map has k. It returns the value that k then has,
// and whether the map had k before. Errors are as for Put.
func (m *Shared[K, V]) PutIfAbsent(k K, v V) (value V, found bool, err error) {
	err = m.change("PutIfAbsent", k, func(at *V, there bool) bool {
		if found = there; !found {
			*at = v
		}
		value = *at
		return !found
	})
	if err != nil {
		var none V
		return none, false, err
	}
	return value, found, nil
}

// Update calls fn under the lock of k's table, with a pointer to a copy of the value of k, which is
// zero if the map does not have k. Then it stores the copy as k's value. Other calls see the value
// before or after, and no other Update of k runs in between. Errors are as for Put, possibly after
// fn has been called; the map is then unchanged.
//
// fn must not use the map: that would deadlock. If fn panics, the map is unchanged.
func (m *Shared[K, V]) Update(k K, fn func(v *V, found bool)) error {
	return m.change("Update", k, func(v *V, found bool) bool {
		fn(v, found)
		return true
	})
}

// change is Update, but stores the value only if fn returns true.
func (m *Shared[K, V]) change(call string, k K, fn func(v *V, found bool) bool) error {
	m.mustBeOpen(call)
	h := hashOf(&m.hasher, &k)
	for {
		x, err := m.enterNew(h)
		if err != nil {
			return err
		}
		if done, err := m.tryChange(x, h, &k, fn); done || err != nil {
			return err
		}
	}
}

// tryChange is change in a locked table, which it unlocks. It reports false if it has replaced the
// table to make room.
func (m *Shared[K, V]) tryChange(x held, h uint64, k *K, fn func(v *V, found bool) bool) (done bool, err error) {
	g, i := m.find(x, h, k)
	if g == nil && headOf(x.e).left == 0 {
		return false, m.makeRoom(x, h)
	}
	defer m.leave(x)
	var v V
	if g != nil {
		v = m.valueAt(m.slot(g, i))
	}
	if !fn(&v, g != nil) {
		return true, nil
	}
	return true, m.write(x, h, g, i, k, &v)
}

// Delete removes k, and reports whether the map had it.
func (m *Shared[K, V]) Delete(k K) bool { return m.delete("Delete", k, nil) }

// DeleteIf calls cond with the value of k under the lock of k's table, if the map has k, and
// removes k if cond returns true. It reports whether it removed k. No Put or Update of k runs in
// between. So DeleteIf can remove an expired entry without removing a newer one, and cond can
// record the removed value. cond must not use the map: that would deadlock.
func (m *Shared[K, V]) DeleteIf(k K, cond func(v V) bool) bool {
	return m.delete("DeleteIf", k, cond)
}

// delete removes k, unless cond is not nil and returns false.
func (m *Shared[K, V]) delete(call string, k K, cond func(v V) bool) bool {
	m.mustBeOpen(call)
	h := hashOf(&m.hasher, &k)
	x, ok := m.enter(h)
	if !ok {
		return false
	}
	defer m.leave(x)
	g, i := m.find(x, h, &k)
	if g == nil || cond != nil && !cond(m.valueAt(m.slot(g, i))) {
		return false
	}
	if m.direct {
		vacate(x.e, g, i, 0)
		return true
	}
	var texts [2]ref
	old := m.appendTexts(texts[:0], m.slot(g, i))
	vacate(x.e, g, i, textBytes(old...))
	m.retired.retire(&m.sharedTables, old...)
	return true
}

// find returns the group and the slot of k in a locked table, or nil.
func (m *Shared[K, V]) find(x held, h uint64, k *K) (unsafe.Pointer, uintptr) {
	tag, groups := tagOf(h), groupsOf(x.e)
	i := homeOf(h, groups)
	for range groups {
		g := m.group(tableOf(x.e), i)
		w := *tagsAt(g)
		for match := matchTag(w, tag); match != 0; match &= match - 1 {
			if slot := slotOf(match); m.isKey(m.slot(g, slot), k) {
				return g, slot
			}
		}
		if w&passBit(tag) == 0 {
			return nil, 0
		}
		if i++; i == groups {
			i = 0
		}
	}
	return nil, 0
}

// write sets the value of k at the slot of group g that find returned, or adds k if g is nil. The
// table is locked and has room.
func (m *Shared[K, V]) write(x held, h uint64, g unsafe.Pointer, i uintptr, k *K, v *V) (err error) {
	var key, value ref
	if m.values != noText {
		if value, err = newBlock(&m.sharedTables, 0, blockAlign, textOf(m.values, v)); err != nil {
			return err
		}
	}
	if g != nil {
		slot := m.slot(g, i)
		if m.hasher.kind == otherKeys {
			storeCell(slot, k) // -0 may replace +0; any mixture of their words equals both
		}
		if m.values == noText {
			setValue(m, g, slot, v)
			return nil
		}
		p := unsafe.Add(slot, m.layout.value)
		old := *(*ref)(p)
		storeRef(p, value)
		hd := headOf(x.e)
		storeWord(&hd.text, hd.text+textBytes(value)-textBytes(old))
		m.retired.retire(&m.sharedTables, old)
		return nil
	}
	if m.keys != noText {
		if key, err = newBlock(&m.sharedTables, 0, blockAlign, textOf(m.keys, k)); err != nil {
			freeBlock(&m.sharedTables, value, 0)
			return err
		}
	}
	g, i = m.place(x.e, h)
	slot := m.slot(g, i)
	raise(g) // W1
	m.seam.At(raised)
	if m.keys != noText { // W2
		storeRef(slot, key)
	} else {
		storeCell(slot, k)
	}
	m.seam.At(wroteKey)
	if p := unsafe.Add(slot, m.layout.value); m.values != noText {
		storeRef(p, value)
	} else {
		storeCell(p, v)
	}
	m.seam.At(wroteValue)
	fill(x.e, g, i, h, textBytes(key, value))
	return nil
}

// setValue replaces the value in a slot. A value of one word needs no version, as it is one store.
func setValue[K comparable, V any](m *Shared[K, V], g, slot unsafe.Pointer, v *V) {
	p := unsafe.Add(slot, m.layout.value)
	if unsafe.Sizeof(*v) <= wordBytes {
		storeCell(p, v)
		return
	}
	version := *versionOf(g)
	atomic.StoreUint64(versionOf(g), version+1) // atomic, to be visible before the value on every system
	m.seam.At(raised)
	storeCell(p, v)
	m.seam.At(wroteValue)
	atomic.StoreUint64(versionOf(g), version+2)
}

// isKey reports whether a slot's key is k.
func (m *Shared[K, V]) isKey(slot unsafe.Pointer, k *K) bool {
	if m.keys != noText {
		return loadText(slot) == *(*string)(unsafe.Pointer(k))
	}
	return loadCell[K](slot) == *k
}

// hashAt returns the hash of a slot's key, in a locked table.
func (m *Shared[K, V]) hashAt(slot unsafe.Pointer) uint64 {
	var k K
	if m.keys != noText {
		*(*string)(unsafe.Pointer(&k)) = (*(*ref)(slot)).text(0)
	} else {
		k = loadCell[K](slot)
	}
	return hashOf(&m.hasher, &k)
}

// ownKeyAt returns a slot's key. Text is copied.
func (m *Shared[K, V]) ownKeyAt(slot unsafe.Pointer) K {
	if m.keys != noText {
		return copyOf[K](m.keys, loadText(slot))
	}
	return loadCell[K](slot)
}

// valueAt returns a slot's value. Text is copied.
func (m *Shared[K, V]) valueAt(slot unsafe.Pointer) V {
	p := unsafe.Add(slot, m.layout.value)
	if m.values != noText {
		return copyOf[V](m.values, loadText(p))
	}
	return loadCell[V](p)
}
