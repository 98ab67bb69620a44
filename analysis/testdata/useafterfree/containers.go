package useafterfree

import (
	"strings"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/btree"
	"github.com/freehold-go/freehold/hashmap"
	"github.com/freehold-go/freehold/intern"
	"github.com/freehold-go/freehold/vector"
)

func ofMaps(h *freehold.Heap) byte {
	texts := hashmap.New[int, string](h, nil)
	text, _ := texts.Get(1)
	kept := strings.Clone(text)
	counts := hashmap.New[string, int](h, nil)
	n, _ := counts.Get("a")
	at := counts.At("a")
	raw := hashmap.New[string, []byte](h, nil)
	b, _ := hashmap.GetBytes(raw, []byte("a"))
	words := btree.New[string, int](h, nil)
	word, _, _ := words.Min()
	texts.Close()
	counts.Close()
	raw.Close()
	words.Close()
	n++
	*at = n                          // want `a block of counts is written after counts.Close`
	first := b[0]                    // want `a block of raw is read after raw.Close`
	first += word[0]                 // want `a block of words is read after words.Close`
	return kept[0] + first + text[0] // want `a block of texts is read after texts.Close`
}

func ofShards(h *freehold.Heap) byte {
	texts := hashmap.NewShared[int, string](h, nil)
	text, _ := texts.Get(1)
	texts.Close()
	return text[0]
}

func ofStrings(h *freehold.Heap) byte {
	names := intern.New(h, nil)
	id, _ := names.Intern("a")
	name := names.Value(id)
	names.Close()
	return name[0] // want `a block of names is read after names.Close`
}

func ofVectors(h *freehold.Heap) int {
	v := vector.New[int](h, nil)
	c := vector.NewChunked[int](h, nil)
	s, e := v.Slice(), c.At(0)
	first := v.At(0)
	v.Close()
	c.Close()
	return first + s[0] + *e // want `a block of v is read after v.Close` `a block of c is read after c.Close`
}

type (
	counts       = hashmap.Map[string, int]
	sharedCounts = hashmap.Shared[string, int]
)

// Functions with keys in bytes are calls of their map.
func closedPutBytes(m *counts, k []byte) {
	m.Close()
	hashmap.PutBytes(m, k, 2) // want `hashmap.PutBytes after m.Close`
}

func closedUpdateBytes(m *counts, k []byte) { m.Close(); hashmap.UpdateBytes(m, k, nil) } // want `hashmap.UpdateBytes after m.Close`
func closedGetBytes(m *counts, k []byte)    { m.Close(); hashmap.GetBytes(m, k) }         // want `hashmap.GetBytes after m.Close`
func closedPutSharedBytes(s *sharedCounts, k []byte) {
	s.Close()
	hashmap.PutSharedBytes(s, k, 2) // want `hashmap.PutSharedBytes after s.Close`
}

func closedUpdateSharedBytes(s *sharedCounts, k []byte) {
	s.Close()
	hashmap.UpdateSharedBytes(s, k, nil) // want `hashmap.UpdateSharedBytes after s.Close`
}

func closedGetSharedBytes(s *sharedCounts, k []byte) {
	s.Close()
	hashmap.GetSharedBytes(s, k) // want `hashmap.GetSharedBytes after s.Close`
}

func closedViewSharedBytes(s *sharedCounts, k []byte) {
	s.Close()
	hashmap.ViewSharedBytes(s, k, nil) // want `hashmap.ViewSharedBytes after s.Close`
}

func openBytes(m *counts, s *sharedCounts, k []byte) {
	hashmap.PutBytes(m, k, 2)
	hashmap.ViewSharedBytes(s, k, func(int) {})
	m.Close()
	s.Close()
	m.Len()
}

// A string of a map ends when its entry is deleted.
func deleted(texts *hashmap.Map[string, string], words *btree.Map[string, int], k, other string, at int) (string, int) {
	text, _ := texts.Get(k)
	another, _ := texts.Get(other)
	kept := strings.Clone(text)
	n := len(another)
	texts.Delete(k)
	kept += another + text // want `a block of texts is read after texts.Delete`
	texts.Clear()
	kept += another // want `a block of texts is read after texts.Clear`
	last, _, _ := words.Max()
	first, count, _ := words.Min()
	value := words.At(k)
	words.Delete(k)
	kept += first
	count += *value // want `a block of words is read after words.Delete`
	words.Delete(first)
	kept += last
	kept += first // want `a block of words is read after words.Delete`
	words.Clear()
	kept += last // want `a block of words is read after words.Clear`
	return kept, n + count
}

func taken(texts *hashmap.Map[string, string], ids *hashmap.Map[int, string], k string) (string, string) {
	text, _ := texts.Get(k)
	texts.Delete(k)
	one, _ := ids.Get(1)
	two, _ := ids.Get(2)
	ids.Delete(1)
	return text, one + two // want `a block of texts is returned after texts.Delete` `a block of ids is read after ids.Delete`
}

func takenCopy(m *hashmap.Map[string, string], k string) (string, string) {
	text, _ := m.Get(k)
	text = strings.Clone(text)
	m.Delete(k)
	again, _ := m.Get(k)
	return text, again
}

func popKey(words *btree.Map[string, int]) (string, bool) {
	first, _, ok := words.Min()
	words.Delete(first)
	return first, ok // want `a block of words is returned after words.Delete`
}

func popNumber(m *btree.Map[int, int]) (int, int) {
	k, v, _ := m.Min()
	m.Delete(k)
	return k, v
}

func absent(m *hashmap.Map[int, []byte], k, other int, v []byte) []byte {
	was, _, _ := m.PutIfAbsent(k, v)
	m.Delete(other)
	m.Delete(k)
	return was // want `a block of m is returned after m.Delete`
}

func replacedText(m *hashmap.Map[int, string], n *hashmap.Map[int, string], counts *hashmap.Map[int, int], k int) (string, error) {
	was, _ := m.Get(k)
	m.Put(k+1, "x")
	first := was[0]
	m.Put(k, "x")
	first += was[0] // want `a block of m is read after m.Put`
	old, _ := n.Get(k)
	if err := n.Put(k, "x"); err != nil {
		return old, err
	}
	at := counts.At(k)
	counts.Put(k, 1)
	*at++
	return old + string(first), nil // want `a block of n is read after n.Put`
}

func replacedMaybe(m *hashmap.Map[int, string], k int) (string, error) {
	old, _ := m.Get(k)
	err := m.Put(k, "x")
	return old, err
}

type owned struct {
	names *hashmap.Map[int, string]
	id    int
}

func (o *owned) next(names *hashmap.Map[int, string]) string {
	name, _ := names.Get(o.id)
	o.id++
	names.Delete(o.id)
	return name
}

func (o *owned) last() string {
	name, _ := o.names.Get(o.id)
	o.names.Delete(o.id)
	return name // want `a block of o.names is returned after o.names.Delete`
}
