// Calls of a Map that owns copies of keys or values.

package hashmap

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
)

// findOwned returns the slot of k, whose hash is h.
func (m *Map[K, V]) findOwned(k *K, h uint64) (at spot, ok bool) {
	if m.hash.kind == stringKeys {
		return m.findString(*(*string)(unsafe.Pointer(k)), h)
	}
	return find[K, ref](&m.core, k, h)
}

// valueOf returns the address of a slot's value. If that is a string or []byte, it is the address
// of the reference.
//
// Precondition: pairs is not set.
func (c *core) valueOf(at spot) unsafe.Pointer {
	switch {
	case c.hash.kind == stringKeys && c.head > 0: // a value without size may have no block
		return refIn(at).block()
	case c.valueKind == isLarge:
		return unsafe.Pointer(unsafe.StringData((*(*ref)(c.value(at))).text(0)))
	}
	return c.value(at)
}

// load returns the value of a slot.
func (m *Map[K, V]) load(at spot) (v V) {
	switch {
	case m.pairs:
		return viewOf[V](m.valueKind, refIn(at).pairValue())
	case m.views():
		return viewOf[V](m.valueKind, (*(*ref)(m.value(at))).text(0))
	}
	return *(*V)(m.valueOf(at))
}

// getOwned is Get of k, whose hash is h.
func (m *Map[K, V]) getOwned(k *K, h uint64) (v V, ok bool) {
	if at, ok := m.findOwned(k, h); ok {
		return m.load(at), true
	}
	return v, false
}

func (m *Map[K, V]) atOwned(k *K) *V {
	if m.views() {
		arg.Panicf("hashmap.Map.At", "values are copies that the map owns: use Get and Put")
	}
	if at, ok := m.findOwned(k, hashOf(&m.hash, k)); ok {
		return (*V)(m.valueOf(at))
	}
	return nil
}

func (m *Map[K, V]) putOwned(k *K, v *V) error {
	switch {
	case m.pairs:
		return m.putPair(*(*string)(unsafe.Pointer(k)), textOf(m.valueKind, v))
	case m.hash.kind == stringKeys:
		return m.putString(*(*string)(unsafe.Pointer(k)), v)
	}
	return m.putText(k, v)
}

// putString is putOwned for a string key whose block has the value too.
func (m *Map[K, V]) putString(key string, v *V) error {
	at, h, found := m.lookUp(key)
	if !found {
		r, err := newBlock(m, m.head, m.align, key)
		if err != nil {
			return err
		}
		if at, err = m.insert(h); err != nil {
			freeBlock(m, r, m.head)
			return err
		}
		*refIn(at), *hashIn(at.key) = r, h
	}
	if m.head > 0 { // a value without size may have no block
		*(*V)(refIn(at).block()) = *v
	}
	return nil
}

// putText is putOwned for a key that is not a string and a value that is text.
func (m *Map[K, V]) putText(k *K, v *V) error {
	h := hashOf(&m.hash, k)
	at, found := find[K, ref](&m.core, k, h)
	if found && m.valueKind == isLarge {
		*(*K)(at.key), *(*V)(m.valueOf(at)) = *k, *v // -0 may replace +0
		return nil
	}
	value, err := newBlock(m, 0, blockAlign, textOf(m.valueKind, v))
	if err != nil {
		return err
	}
	if found {
		p := (*ref)(m.value(at))
		freeBlock(m, *p, 0)
		*(*K)(at.key), *p = *k, value
		return nil
	}
	if at, err = m.insert(h); err != nil {
		freeBlock(m, value, 0)
		return err
	}
	*(*K)(at.key) = *k
	*(*ref)(m.value(at)) = value
	return nil
}

func (m *Map[K, V]) deleteOwned(k *K) bool {
	h := hashOf(&m.hash, k)
	at, ok := m.findOwned(k, h)
	if ok {
		if m.hash.kind == stringKeys {
			m.eachCopy(*refIn(at), h, func(at spot) { *tagIn(at.tags, at.slot) = 0 })
		}
		m.freeSlot(at)
		m.remove(m.tableOf(h), at, h)
		m.len--
	}
	return ok
}

// views reports whether callers get values without a copy: strings and []byte.
func (c *core) views() bool { return c.valueKind == isString || c.valueKind == isBytes }

// freeSlot frees the blocks of a slot.
func (c *core) freeSlot(at spot) {
	switch {
	case c.pairs:
		c.freePair(*refIn(at))
	case c.hash.kind == stringKeys:
		freeBlock(c, *refIn(at), c.head)
	default:
		freeBlock(c, *(*ref)(c.value(at)), 0)
	}
}
