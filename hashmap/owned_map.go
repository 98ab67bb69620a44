// Calls of a Map that owns copies of keys or values.

package hashmap

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
)

// findOwned returns the group and the slot of k, whose hash is h, or nil.
func (m *Map[K, V]) findOwned(k *K, h uint64) (g unsafe.Pointer, slot uintptr) {
	if m.hash.kind == stringKeys {
		return m.findString(*(*string)(unsafe.Pointer(k)), h)
	}
	return find[K, ref](&m.core, k, h)
}

// valueOf returns the address of a slot's value. If that is a string or []byte, it is the address
// of the reference.
//
// Precondition: pairs is not set.
func (c *core) valueOf(g unsafe.Pointer, slot uintptr) unsafe.Pointer {
	switch {
	case c.hash.kind == stringKeys && c.head > 0: // a value without size may have no block
		return (*refIn(g, slot)).block()
	case c.valueKind == isLarge:
		return unsafe.Pointer(unsafe.StringData((*(*ref)(c.value(g, slot))).text(0)))
	}
	return c.value(g, slot)
}

// load returns the value of a slot.
func (m *Map[K, V]) load(g unsafe.Pointer, slot uintptr) (v V) {
	switch {
	case m.pairs:
		return viewOf[V](m.valueKind, (*refIn(g, slot)).pairValue())
	case m.views():
		return viewOf[V](m.valueKind, (*(*ref)(m.value(g, slot))).text(0))
	}
	return *(*V)(m.valueOf(g, slot))
}

// getOwned is Get of k, whose hash is h.
func (m *Map[K, V]) getOwned(k *K, h uint64) (v V, ok bool) {
	if g, slot := m.findOwned(k, h); g != nil {
		return m.load(g, slot), true
	}
	return v, false
}

func (m *Map[K, V]) atOwned(k *K) *V {
	if m.views() {
		arg.Panicf("hashmap.Map.At", "values are copies that the map owns: use Get and Put")
	}
	if g, slot := m.findOwned(k, hashOf(&m.hash, k)); g != nil {
		return (*V)(m.valueOf(g, slot))
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
	r, h, found := m.lookUp(key)
	if !found {
		var err error
		if r, err = newBlock(m, m.head, m.align, key); err != nil {
			return err
		}
		g, slot, err := m.insert(h)
		if err != nil {
			freeBlock(m, r, m.head)
			return err
		}
		*refIn(g, slot) = r
	}
	if m.head > 0 { // a value without size may have no block
		*(*V)(r.block()) = *v
	}
	return nil
}

// putText is putOwned for a key that is not a string and a value that is text.
func (m *Map[K, V]) putText(k *K, v *V) error {
	h := hashOf(&m.hash, k)
	g, slot := find[K, ref](&m.core, k, h)
	if g != nil && m.valueKind == isLarge {
		*(*V)(m.valueOf(g, slot)) = *v
		return nil
	}
	value, err := newBlock(m, 0, blockAlign, textOf(m.valueKind, v))
	if err != nil {
		return err
	}
	if g != nil {
		p := (*ref)(m.value(g, slot))
		freeBlock(m, *p, 0)
		*p = value
		return nil
	}
	if g, slot, err = m.insert(h); err != nil {
		freeBlock(m, value, 0)
		return err
	}
	*keyIn[K](g, slot) = *k
	*(*ref)(m.value(g, slot)) = value
	return nil
}

func (m *Map[K, V]) deleteOwned(k *K) bool {
	h := hashOf(&m.hash, k)
	g, slot := m.findOwned(k, h)
	if g == nil {
		return false
	}
	m.freeSlot(g, slot)
	m.remove(g, slot, h)
	return true
}

// views reports whether callers get values without a copy: strings and []byte.
func (c *core) views() bool { return c.valueKind == isString || c.valueKind == isBytes }

// freeSlot frees the blocks of a slot.
func (c *core) freeSlot(g unsafe.Pointer, slot uintptr) {
	switch {
	case c.pairs:
		c.freePair(*refIn(g, slot))
	case c.hash.kind == stringKeys:
		freeBlock(c, *refIn(g, slot), c.head)
	default:
		freeBlock(c, *(*ref)(c.value(g, slot)), 0)
	}
}
