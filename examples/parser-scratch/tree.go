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
	"bytes"
	"encoding/json"
	"iter"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
)

// A Kind is the type of a value.
type Kind uint8

const (
	Null Kind = iota
	False
	True
	Number
	String
	Array
	Object
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
// The error is a *json.SyntaxError, or a *strconv.NumError for a number out of range,
// or matches freehold.ErrOutOfMemory. On an error the arena is unchanged.
func Parse(a *arena.Arena, text []byte) (*Node, error) {
	if !json.Valid(text) {
		return nil, json.Unmarshal(text, new(any))
	}
	before := a.Mark()
	b := builder{arena: a, rest: text}
	root, err := b.value(false)
	if err != nil {
		a.Rewind(before)
		return nil, err
	}
	return root, nil
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
	for c := range n.All() {
		if n.Kind == Object && c.Key.Get() == key {
			found = c
		}
	}
	return found
}

// A builder builds nodes from a text that is valid JSON.
type builder struct {
	arena *arena.Arena
	rest  []byte // of the text
}

// peek returns the first byte of the next value or key, or the closing bracket.
func (b *builder) peek() byte {
	for {
		switch c := b.rest[0]; c {
		case ' ', '\t', '\r', '\n', ',', ':':
			b.rest = b.rest[1:]
		default:
			return c
		}
	}
}

// value builds the next value, after its key if it has one.
func (b *builder) value(hasKey bool) (n *Node, err error) {
	if n, err = freehold.New[Node](b.arena); err != nil {
		return nil, err
	}
	if hasKey {
		if n.Key, err = b.text(); err != nil {
			return nil, err
		}
	}
	switch b.peek() {
	case 'n':
		b.rest = b.rest[len("null"):]
	case 'f':
		n.Kind, b.rest = False, b.rest[len("false"):]
	case 't':
		n.Kind, b.rest = True, b.rest[len("true"):]
	case '"':
		n.Kind = String
		n.Text, err = b.text()
	case '[':
		n.Kind = Array
		err = b.children(n, ']')
	case '{':
		n.Kind = Object
		err = b.children(n, '}')
	default:
		n.Kind = Number
		end := len(b.rest) - len(bytes.TrimLeft(b.rest, "+-.0123456789Ee"))
		n.Number, err = strconv.ParseFloat(string(b.rest[:end]), 64)
		b.rest = b.rest[end:]
	}
	return n, err
}

// children builds all values up to n's closing bracket.
func (b *builder) children(n *Node, closing byte) error {
	b.rest = b.rest[1:]
	for link := &n.first; b.peek() != closing; {
		c, err := b.value(n.Kind == Object)
		if err != nil {
			return err
		}
		*link = freehold.PtrTo(c)
		link = &c.next
	}
	b.rest = b.rest[1:]
	return nil
}

// text returns the next key or string as a block of the arena.
func (b *builder) text() (freehold.String, error) {
	b.peek()
	b.rest = b.rest[1:]
	end, escapes := 0, false
	for b.rest[end] != '"' {
		if b.rest[end] == '\\' {
			escapes = true
			end++ // skip the escaped byte, which may be a quote
		}
		end++
	}
	text := b.rest[:end]
	b.rest = b.rest[end+1:]
	if !escapes && utf8.Valid(text) {
		block, err := freehold.Clone(b.arena, text)
		return freehold.StringOf(block), err
	}
	block, err := b.arena.Alloc(3*len(text), 1) // enough if each byte is invalid and becomes U+FFFD
	if err != nil {
		return freehold.String{}, err
	}
	value := unescape(block[:0], text)
	block, _ = b.arena.Resize(block, len(value)) // the newest block shrinks in place
	return freehold.StringOf(block), nil
}

// unescape appends the value of a string without its quotes to dst.
func unescape(dst, text []byte) []byte {
	for len(text) > 0 {
		switch {
		case text[0] != '\\':
			c, size := utf8.DecodeRune(text)
			dst = utf8.AppendRune(dst, c)
			text = text[size:]
		case text[1] != 'u':
			dst = append(dst, escaped[text[1]])
			text = text[2:]
		default:
			c := hex(text[2:6])
			text = text[6:]
			if bytes.HasPrefix(text, []byte(`\u`)) {
				if pair := utf16.DecodeRune(c, hex(text[2:6])); pair != utf8.RuneError {
					c, text = pair, text[6:]
				}
			}
			dst = utf8.AppendRune(dst, c) // half a surrogate pair becomes U+FFFD
		}
	}
	return dst
}

var escaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func hex(digits []byte) rune {
	v, _ := strconv.ParseUint(string(digits), 16, 16)
	return rune(v)
}
