// Texts: string keys with an inline prefix.
//
//	text | first 8 bytes as a number | string: address, length |
//
// Most comparisons end at the number and do not touch the string's bytes, which are in a block of
// their own.

package btree

import (
	"cmp"
	"encoding/binary"
	"strings"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/container"
)

// A text is the slot of a string key. Its string is off-heap.
type text struct {
	prefix uint64 // the first bytes, big-endian, padded with zeros
	string freehold.String
}

func textSearch[K cmp.Ordered, V any]() search[K, V] {
	return search[K, V]{findText[K, V], upperText[K, V]}
}

func findText[K cmp.Ordered, V any](m *Map[K, V], k K) (*node, int, bool) {
	s := stringOf(&k)
	prefix := prefixOf(s)
	n := m.root
	for level := m.height; level > 1; level-- {
		n = m.child(n, upperTexts(textsOf(&m.inner, n), prefix, s))
	}
	m.leaf.prefetch(n)
	texts := textsOf(&m.leaf, n)
	i := upperTexts(texts, prefix, s)
	if i > 0 && texts[i-1].prefix == prefix && texts[i-1].string.Get() == s {
		return n, i - 1, true
	}
	return n, i, false
}

func upperText[K cmp.Ordered, V any](_ *Map[K, V], l *layout, n *node, k K) int {
	s := stringOf(&k)
	return upperTexts(textsOf(l, n), prefixOf(s), s)
}

// upperTexts returns the number of texts that are at most s. prefix is the prefix of s.
func upperTexts(texts []text, prefix uint64, s string) int {
	low, high := 0, len(texts)
	for low < high {
		mid := int(uint(low+high) / 2)
		t := &texts[mid]
		if t.prefix < prefix || t.prefix == prefix && strings.Compare(t.string.Get(), s) <= 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// textsOf returns the keys of n, which has layout l and texts for keys.
func textsOf(l *layout, n *node) []text { return unsafe.Slice((*text)(n.at(l.keys)), n.count()) }

// stringOf returns *k, whose type is a string type.
func stringOf[K any](k *K) string { return *(*string)(unsafe.Pointer(k)) }

// cloned returns a copy of k, whose type is a string type, on the Go heap.
func cloned[K any](k K) K {
	s := strings.Clone(stringOf(&k))
	return *(*K)(unsafe.Pointer(&s))
}

// prefixOf returns the prefix of s.
func prefixOf(s string) uint64 {
	if len(s) >= 8 {
		return binary.BigEndian.Uint64([]byte(s[:8]))
	}
	var b [8]byte
	copy(b[:], s)
	return binary.BigEndian.Uint64(b[:])
}

// ownText returns a text with a copy of s, which the map owns.
func (m *Map[K, V]) ownText(s string) (t text, err error) {
	copied, err := freehold.CloneString(m.base.Parent, s)
	if err != nil {
		return t, container.Refused(err)
	}
	return text{prefixOf(s), freehold.StringOf(copied)}, nil
}

// disown frees the strings of keys i up to j of the leaf n, before these are deleted.
func (m *Map[K, V]) disown(n *node, i, j int) {
	for _, t := range textsOf(&m.leaf, n)[i:j] {
		m.counts.textBytes -= t.string.Len()
	}
	m.freeTexts(n, i, j)
}

// freeTexts is disown without the count.
func (m *Map[K, V]) freeTexts(n *node, i, j int) {
	for _, t := range textsOf(&m.leaf, n)[i:j] {
		freehold.FreeString(m.base.Parent, t.string.Get())
	}
}
