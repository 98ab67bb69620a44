// Writers of a Shared, which hold the lock of the key's table.

package hashmap

import (
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold"
)

// Put sets the value of k. An error matches [freehold.ErrOutOfMemory]; the map is then unchanged. A
// NaN is never found, so each Put of one adds an entry.
func (m *Shared[K, V]) Put(k K, v V) error {
	m.base.MustBeOpen(&sharedKind, "Put")
	h := hashOf(&m.hash, &k)
	for try := 0; ; try++ {
		x, err := m.enterNew(h)
		if err != nil {
			return err
		}
		at, found := m.find(x, h, &k)
		ok := at.key != nil
		if !ok {
			at, ok = x.roomFor(&m.layout, h)
		}
		if ok {
			err = m.write(x, h, at, found, &k, &v)
			m.leave(x)
			return err
		}
		if err := m.makeRoom(x, h, try > 0); err != nil {
			return err
		}
	}
}

// PutIfAbsent sets the value of k to v unless the map has k. It returns the value that k then has,
// and whether the map had k before. Errors are as for Put.
func (m *Shared[K, V]) PutIfAbsent(k K, v V) (value V, found bool, err error) {
	err = m.change("PutIfAbsent", k, func(at *V, there bool) freehold.Change {
		if found = there; found {
			value = *at
			return freehold.Keep
		}
		*at, value = v, v
		return freehold.Store
	})
	if err != nil {
		var none V
		return none, false, err
	}
	return value, found, nil
}

// Update calls fn under the lock of k's table, with a pointer to a copy of the value of k, or to a
// zero value if the map does not have k. Then it stores the copy as k's value. Other calls see the
// value before or after, and no other Update of k runs in between. Errors are as for Put, possibly
// after fn has been called; the map is then unchanged.
//
// fn must not use the map: that would deadlock. If fn panics, the map is unchanged.
func (m *Shared[K, V]) Update(k K, fn func(v *V, found bool)) error {
	return m.change("Update", k, func(v *V, found bool) freehold.Change {
		fn(v, found)
		return freehold.Store
	})
}

// change is Update, but does the [freehold.Change] that fn returns.
func (m *Shared[K, V]) change(call string, k K, fn func(v *V, found bool) freehold.Change) error {
	m.base.MustBeOpen(&sharedKind, call)
	h := hashOf(&m.hash, &k)
	for try := 0; ; try++ {
		x, err := m.enterNew(h)
		if err != nil {
			return err
		}
		if done, err := m.tryChange(x, h, &k, fn, try > 0); done || err != nil {
			return err
		}
	}
}

// tryChange is change in a locked table, which it unlocks. It reports false if it has replaced the
// table to make room.
func (m *Shared[K, V]) tryChange(x held, h uint64, k *K, fn func(v *V, found bool) freehold.Change, again bool) (done bool, err error) {
	at, found := m.find(x, h, k)
	if at.key == nil {
		room := false
		if at, room = x.roomFor(&m.layout, h); !room {
			return false, m.makeRoom(x, h, again)
		}
	}
	defer m.leave(x)
	var v V
	if found {
		v = m.valueAt(at.key)
	}
	switch change := fn(&v, found); {
	case change == freehold.Store:
		err = m.write(x, h, at, found, k, &v)
	case change == freehold.Remove && found:
		m.drop(x, h, at)
	}
	return true, err
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
	m.base.MustBeOpen(&sharedKind, call)
	h := hashOf(&m.hash, &k)
	x, ok := m.enter(h)
	if !ok {
		return false
	}
	defer m.leave(x)
	at, found := m.find(x, h, &k)
	if !found || cond != nil && !cond(m.valueAt(at.key)) {
		return false
	}
	m.drop(x, h, at)
	return true
}

// drop removes the entry in a slot of a locked table.
func (m *Shared[K, V]) drop(x held, h uint64, at spot) {
	m.storeByte(tagIn(at.tags, at.slot), 0)
	if uintptr(at.tags) != x.homeTags {
		m.unpass(x.table, at, h)
	}
	if m.direct {
		x.head().count(^uintptr(0), 0)
		return
	}
	var room [2]ref
	texts := m.appendTexts(room[:0], at.key)
	x.head().count(^uintptr(0), -textBytes(texts...))
	m.retired.retire(&m.sharedTables, texts...)
}

// find returns the slot of k in a locked table. If the table does not have k, at is the free slot of
// the home that k takes, or has no key if find has not seen one.
func (m *Shared[K, V]) find(x held, h uint64, k *K) (at spot, ok bool) {
	key, slot, room := probeLocked(&m.layout, x.homeTags, x.homeKeys, h)
	switch {
	case key == absent:
		return spot{pointer(room), pointer(x.homeTags), slot}, false
	case key != further && m.isKey(pointer(key), k):
		return spot{pointer(key), pointer(x.homeTags), slot}, true
	}
	return x.search(&m.layout, h, func(at spot) bool { return m.isKey(at.key, k) })
}

// write sets the value of k in a slot of a locked table: k's slot if found is set, or else one that
// is free.
func (m *Shared[K, V]) write(x held, h uint64, at spot, found bool, k *K, v *V) (err error) {
	var key, value ref
	if m.values != noText {
		if value, err = newBlock(&m.sharedTables, 0, blockAlign, textOf(m.values, v)); err != nil {
			return err
		}
	}
	slot, version := at.key, versionOf(at.tags)
	if found {
		if m.hash.kind == otherKeys {
			storeCell(slot, k) // -0 may replace +0; any mixture of their words equals both
		}
		if m.values == noText {
			setValue(m, version, slot, v)
			return nil
		}
		p := m.valueIn(slot)
		old := *(*ref)(p)
		storeRef(p, value)
		x.head().count(0, textBytes(value)-textBytes(old))
		m.retired.retire(&m.sharedTables, old)
		return nil
	}
	if m.keys != noText {
		if key, err = newBlock(&m.sharedTables, 0, blockAlign, textOf(m.keys, k)); err != nil {
			freeBlock(&m.sharedTables, value, 0)
			return err
		}
	}
	if uintptr(at.tags) != x.homeTags {
		x.pass(&m.layout, h, x.groupOf(at.tags))
	}
	raise(version) // W1
	m.seam.At(raised)
	if m.keys != noText { // W2
		storeRef(slot, key)
	} else {
		storeCell(slot, k)
	}
	m.seam.At(wroteKey)
	if p := m.valueIn(slot); m.values != noText {
		storeRef(p, value)
	} else {
		storeCell(p, v)
	}
	m.seam.At(wroteValue)
	text := uintptr(0)
	if !m.direct {
		text = textBytes(key, value)
	}
	x.fill(&m.layout, at, h, text)
	return nil
}

// setValue replaces the value in a slot. A value of one word needs no version, as it is one store.
func setValue[K comparable, V any](m *Shared[K, V], version *uint64, slot unsafe.Pointer, v *V) {
	p := m.valueIn(slot)
	if unsafe.Sizeof(*v) <= wordBytes {
		storeCell(p, v)
		return
	}
	before := *version
	atomic.StoreUint64(version, before+1) // atomic, to be visible before the value on every system
	m.seam.At(raised)
	storeCell(p, v)
	m.seam.At(wroteValue)
	atomic.StoreUint64(version, before+2)
}

// isKey reports whether a slot's key is k.
func (m *Shared[K, V]) isKey(slot unsafe.Pointer, k *K) bool {
	if m.keys != noText {
		return loadText(slot) == *(*string)(unsafe.Pointer(k))
	}
	return loadCell[K](slot) == *k
}

// valueIn returns the address of the value beside a key.
func (l *layout) valueIn(slot unsafe.Pointer) unsafe.Pointer {
	return unsafe.Add(slot, -int(l.valueBytes))
}

// hashOfSlot is hashAt of m.
func (m *Shared[K, V]) hashOfSlot(slot unsafe.Pointer) uint64 {
	var k K
	if m.keys != noText {
		*(*string)(unsafe.Pointer(&k)) = (*(*ref)(slot)).text(0)
	} else {
		k = loadCell[K](slot)
	}
	return hashOf(&m.hash, &k)
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
	p := m.valueIn(slot)
	if m.values != noText {
		return copyOf[V](m.values, loadText(p))
	}
	return loadCell[V](p)
}
