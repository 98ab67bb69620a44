// The calls of maps that own copies.

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
	return m.findPlain(k, h)
}

// findPlain is find for a map whose values are references.
func (m *Map[K, V]) findPlain(k *K, h uint64) (g unsafe.Pointer, slot uintptr) {
	p := m.probe(h)
	for p.next() {
		if *keyIn[K](p.group, p.slot) == *k {
			return p.group, p.slot
		}
	}
	return nil, 0
}

// valueOf returns where a slot's value is, or the reference to it if that is a string or []byte.
func (c *core) valueOf(g unsafe.Pointer, slot uintptr) unsafe.Pointer {
	switch {
	case c.hash.kind == stringKeys && c.head > 0: // else there may be no block
		return (*refIn(g, slot)).block()
	case c.valueKind == isLarge:
		return unsafe.Pointer(unsafe.StringData((*(*ref)(c.value(g, slot))).text(0)))
	}
	return c.value(g, slot)
}

// load returns the value at p.
func (m *Map[K, V]) load(p unsafe.Pointer) (v V) {
	switch m.valueKind {
	case isString:
		*(*string)(unsafe.Pointer(&v)) = (*(*ref)(p)).text(0)
	case isBytes:
		s := (*(*ref)(p)).text(0)
		*(*[]byte)(unsafe.Pointer(&v)) = unsafe.Slice(unsafe.StringData(s), len(s))
	default:
		v = *(*V)(p)
	}
	return v
}

// getOwned is Get of k, whose hash is h.
func (m *Map[K, V]) getOwned(k *K, h uint64) (v V, ok bool) {
	if g, slot := m.findOwned(k, h); g != nil {
		return m.load(m.valueOf(g, slot)), true
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
	h := hashOf(&m.hash, k)
	g, slot := m.findOwned(k, h)
	if g != nil && !m.views() {
		*(*V)(m.valueOf(g, slot)) = *v
		return nil
	}
	var key, value ref
	var err error
	if m.valueKind != noText {
		if value, err = m.newBlock(0, blockAlign, textOf(m.valueKind, v)); err != nil {
			return err
		}
	}
	if g != nil {
		p := m.valueRef(g, slot)
		m.freeBlock(*p, 0)
		*p = value
		return nil
	}
	if m.hash.kind == stringKeys {
		key, err = m.newBlock(m.head, m.align, *(*string)(unsafe.Pointer(k)))
	}
	if err == nil {
		if g, slot, err = m.insert(h); err != nil {
			m.freeBlock(key, m.head)
		}
	}
	if err != nil {
		m.freeBlock(value, 0)
		return err
	}
	if m.hash.kind == stringKeys {
		*refIn(g, slot) = key
	} else {
		*keyIn[K](g, slot) = *k
	}
	if m.valueKind != noText {
		*m.valueRef(g, slot) = value
	} else {
		*(*V)(m.valueOf(g, slot)) = *v
	}
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

// valueRef returns the reference to a slot's value.
//
// Precondition: values is not noText.
func (c *core) valueRef(g unsafe.Pointer, slot uintptr) *ref {
	if c.valueKind == isLarge {
		return (*ref)(c.value(g, slot))
	}
	return (*ref)(c.valueOf(g, slot))
}

// views reports whether values are strings or []byte, of which callers get the map's memory.
func (c *core) views() bool { return c.valueKind == isString || c.valueKind == isBytes }

// freeSlot frees the blocks of a slot.
func (c *core) freeSlot(g unsafe.Pointer, slot uintptr) {
	if c.valueKind != noText {
		c.freeBlock(*c.valueRef(g, slot), 0)
	}
	if c.hash.kind == stringKeys {
		c.freeBlock(*refIn(g, slot), c.head)
	}
}

// GetBytes is [Map.Get] with a key given as bytes. It copies nothing.
func GetBytes[K ~string, V any](m *Map[K, V], key []byte) (V, bool) {
	return m.Get(K(unsafe.String(unsafe.SliceData(key), len(key))))
}

// PutBytes is [Map.Put] with a key given as bytes, which the map copies.
func PutBytes[K ~string, V any](m *Map[K, V], key []byte, v V) error {
	return m.Put(K(unsafe.String(unsafe.SliceData(key), len(key))), v)
}
