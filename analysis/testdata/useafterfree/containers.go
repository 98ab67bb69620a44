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
