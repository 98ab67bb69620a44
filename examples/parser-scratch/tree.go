// Tree: a JSON text as nodes in an arena.
//
//	{"a": 1, "b": [2]}      object
//	                          |first
//	                          v
//	                        a: 1 --next--> b: array
//	                                         |first
//	                                         v
//	                                         2
//
// Nodes, keys and strings are blocks of the arena, so one Reset frees them all.
// They refer to each other by freehold.Ptr and freehold.String, which the
// collector does not follow.

package main

import (
	"iter"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
)

// A Node is a value in the tree of a text.
type Node struct {
	Kind   Kind
	Key    freehold.String // in an object
	Text   freehold.String // of a String
	Number float64         // of a Number

	first freehold.Ptr[Node] // child of an Array or Object
	next  freehold.Ptr[Node] // child of the same parent
}

// Parse returns the tree of a JSON text, allocated in the arena. It is valid until
// the arena is reset or closed, or rewound to an earlier mark.
//
// The error is a *SyntaxError, or matches freehold.ErrOutOfMemory. On an error the
// arena is unchanged. On the Go heap, Parse allocates only errors.
func Parse(a *arena.Arena, text string) (*Node, error) {
	before := a.Mark()
	b := builder{reader: reader{source: text}, arena: a}
	var root freehold.Ptr[Node]
	if err := b.values(&root, 0); err != nil {
		a.Rewind(before)
		return nil, err
	}
	return root.Get(), nil
}

// All yields the children of an Array or Object in order.
func (n *Node) All() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for c := n.first.Get(); c != nil && yield(c); c = c.next.Get() {
		}
	}
}

// Get returns the child of an Object with the given key, the last one if there are
// several, or nil if there is none.
func (n *Node) Get(key string) (found *Node) {
	if n.Kind != Object {
		return nil
	}
	for c := range n.All() {
		if c.Key.Get() == key {
			found = c
		}
	}
	return found
}

// builder builds nodes from the values of a reader.
type builder struct {
	reader
	arena *arena.Arena
}

// values builds all values up to closing and links them into a list at link.
func (b *builder) values(link *freehold.Ptr[Node], closing byte) error {
	for b.next(closing) {
		n, err := freehold.New[Node](b.arena)
		if err != nil {
			return err
		}
		*link = freehold.PtrTo(n)
		link = &n.next

		n.Kind = b.kind
		if n.Key, err = b.unquote(b.key); err != nil {
			return err
		}
		switch n.Kind {
		case Number:
			n.Number = b.number
		case String:
			n.Text, err = b.unquote(b.text)
		case Array:
			err = b.values(&n.first, ']')
		case Object:
			err = b.values(&n.first, '}')
		}
		if err != nil {
			return err
		}
	}
	return b.err
}

// unquote returns the value of q as a block of the arena.
func (b *builder) unquote(q quoted) (freehold.String, error) {
	if q.raw == "" || q.plain {
		s, err := freehold.CloneString(b.arena, q.raw)
		return freehold.StringOf(s), err
	}
	block, err := b.arena.Alloc(q.unquotedBytes(), 1)
	if err != nil {
		return freehold.String{}, err
	}
	value := q.appendTo(block[:0])
	block, _ = b.arena.Resize(block, len(value)) // the newest block shrinks in place
	return freehold.StringOf(block), nil
}
