// The calls of maps that own copies.

package hashmap

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
)

// findOwned returns the group and the slot of k, or nil, and its hash.
func (m *Map[K, V]) findOwned(k *K) (g unsafe.Pointer, slot uintptr, h uint64) {
	h = hashOf(&m.hash, k)
	if m.hash.kind == stringKeys {
		g, slot = m.findString(*(*string)(unsafe.Pointer(k)), h)
		return g, slot, h
	}
	g, slot = m.findPlain(k, h)
	return g, slot, h
}

// findPlain is find for a map whose values are references.
func (m *Map[K, V]) findPlain(k *K, h uint64) (g unsafe.Pointer, slot uintptr) {
	t := m.tableOf(h)
	last := t.groups() - 1
	tag := tagOf(h)
	for i, n := t.home(h), uintptr(0); n <= last; i, n = (i+1)&last, n+1 {
		g := t.group(i, m.stride)
		w := *tagsAt(g)
		for match := matchTag(w, tag); match != 0; match &= match - 1 {
			slot := slotOf(match)
			if *keyIn[K](g, slot) == *k {
				return g, slot
			}
		}
		if w&passBit(tag) == 0 {
			break
		}
	}
	return nil, 0
}

// valueOf returns where a slot's value or the reference to it is.
func (c *core) valueOf(g unsafe.Pointer, slot uintptr) unsafe.Pointer {
	if c.hash.kind == stringKeys && c.head > 0 { // else there may be no block
		return (*refIn(g, slot)).block()
	}
	return c.value(g, slot)
}

// load returns the value at p.
func (m *Map[K, V]) load(p unsafe.Pointer) (v V) {
	switch m.valueKind {
	case stringValues:
		*(*string)(unsafe.Pointer(&v)) = (*(*ref)(p)).text(0)
	case bytesValues:
		s := (*(*ref)(p)).text(0)
		*(*[]byte)(unsafe.Pointer(&v)) = unsafe.Slice(unsafe.StringData(s), len(s))
	default:
		v = *(*V)(p)
	}
	return v
}

// textOf returns the bytes of a value that is a string or []byte.
func (m *Map[K, V]) textOf(v *V) string {
	if m.valueKind == stringValues {
		return *(*string)(unsafe.Pointer(v))
	}
	b := *(*[]byte)(unsafe.Pointer(v))
	return unsafe.String(unsafe.SliceData(b), len(b))
}

func (m *Map[K, V]) getOwned(k *K) (v V, ok bool) {
	if g, slot, _ := m.findOwned(k); g != nil {
		return m.load(m.valueOf(g, slot)), true
	}
	return v, false
}

func (m *Map[K, V]) atOwned(k *K) *V {
	if m.valueKind != plainValues {
		arg.Panicf("hashmap.Map.At", "values are copies that the map owns: use Get and Put")
	}
	if g, slot, _ := m.findOwned(k); g != nil {
		return (*V)(m.valueOf(g, slot))
	}
	return nil
}

func (m *Map[K, V]) putOwned(k *K, v *V) error {
	g, slot, h := m.findOwned(k)
	var value ref
	if m.valueKind != plainValues {
		var err error
		if value, err = m.newBlock(0, 1, m.textOf(v)); err != nil {
			return err
		}
	}
	if g != nil {
		p := m.valueOf(g, slot)
		if m.valueKind == plainValues {
			*(*V)(p) = *v
			return nil
		}
		m.freeBlock(*(*ref)(p), 0)
		*(*ref)(p) = value
		return nil
	}
	var key ref
	var err error
	if m.hash.kind == stringKeys {
		key, err = m.newBlock(m.head, m.align, *(*string)(unsafe.Pointer(k)))
	}
	if err == nil {
		if g, slot, err = m.insert(h); err != nil && m.hash.kind == stringKeys {
			m.freeBlock(key, m.head)
		}
	}
	if err != nil {
		if m.valueKind != plainValues {
			m.freeBlock(value, 0)
		}
		return err
	}
	if m.hash.kind == stringKeys {
		*refIn(g, slot) = key
	} else {
		*keyIn[K](g, slot) = *k
	}
	if m.valueKind != plainValues {
		*(*ref)(m.valueOf(g, slot)) = value
	} else {
		*(*V)(m.valueOf(g, slot)) = *v
	}
	return nil
}

func (m *Map[K, V]) deleteOwned(k *K) bool {
	g, slot, h := m.findOwned(k)
	if g == nil {
		return false
	}
	m.freeSlot(g, slot)
	m.remove(g, slot, h)
	return true
}

// freeSlot frees the blocks of a slot.
func (c *core) freeSlot(g unsafe.Pointer, slot uintptr) {
	if c.valueKind != plainValues {
		c.freeBlock(*(*ref)(c.valueOf(g, slot)), 0)
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
